package bootimages_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/release/bootimages"
)

const stream = `{"architectures": {
  "x86_64": {
    "artifacts": {"openstack": {"release": "9.6", "formats": {"qcow2.gz": {"disk": {"location": "https://rhcos.example.com/openstack.qcow2.gz", "sha256": "0a1b"}}}}},
    "images": {
      "aws": {"regions": {"us-east-1": {"release": "9.6", "image": "ami-1"}}},
      "gcp": {"release": "9.6", "project": "rhcos-cloud", "name": "rhcos-96-gcp-x86-64"},
      "kubevirt": {"release": "9.6", "image": "quay.io/kubevirt", "digest-ref": "quay.io/kubevirt@sha256:1"}},
    "rhel-coreos-extensions": {"marketplace": {"azure": {"no-purchase-plan": {"hyperVGen2": {"publisher": "azureopenshift", "offer": "aro4", "sku": "420-v2", "version": "420.1.1"}}}}}},
  "ppc64le": {"images": {"powervs": {"regions": {"us-south": {"release": "9.6", "object": "rhcos.ova.gz", "bucket": "rhcos-powervs-images-us-south", "url": "x"}}}}},
  "riscv64": {}}}`

func file(data ...string) []byte {
	text := "apiVersion: v1\nkind: ConfigMap\ndata:\n"
	for i := 0; i < len(data); i += 2 {
		text += "  " + data[i] + ": |\n    " + strings.ReplaceAll(data[i+1], "\n", "\n    ") + "\n"
	}
	return []byte(text)
}

func TestParse(t *testing.T) {
	t.Run("When a release lists images it should know those of each place", func(t *testing.T) {
		g := NewWithT(t)
		s, err := bootimages.Parse(file("stream", stream))
		g.Expect(err).NotTo(HaveOccurred())
		amd, err := s.For("", "amd64")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(amd).To(Equal(&bootimages.Images{
			AWS: map[string]string{"us-east-1": "ami-1"}, AWSWindows: map[string]string{}, GCP: bootimages.GCP{Project: "rhcos-cloud", Name: "rhcos-96-gcp-x86-64"},
			KubeVirt: "quay.io/kubevirt@sha256:1", OpenStack: bootimages.Download{URL: "https://rhcos.example.com/openstack.qcow2.gz", SHA256: "0a1b"},
			Azure: map[string]bootimages.Marketplace{"Gen2": {Publisher: "azureopenshift", Offer: "aro4", SKU: "420-v2", Version: "420.1.1"}},
		}))
		power, err := s.For("rhel-9", "ppc64le")
		g.Expect(err).NotTo(HaveOccurred(), "one stream has every name")
		g.Expect(power.PowerVS["us-south"]).To(Equal(bootimages.StoredObject{Release: "9.6", Bucket: "rhcos-powervs-images-us-south", Object: "rhcos.ova.gz"}))
	})
	t.Run("When a release has several streams it should choose by name", func(t *testing.T) {
		g := NewWithT(t)
		s, err := bootimages.Parse(file("stream", `{"architectures": {"x86_64": {"images": {"kubevirt": {"digest-ref": "ten"}}}}}`,
			"streams", `{"rhel-9": {"architectures": {"x86_64": {"images": {"kubevirt": {"digest-ref": "nine"}}}}}}`))
		g.Expect(err).NotTo(HaveOccurred())
		for name, want := range map[string]string{"": "ten", "rhel-9": "nine"} {
			images, err := s.For(name, "amd64")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(images.KubeVirt).To(Equal(want))
		}
		_, err = s.For("rhel-8", "amd64")
		g.Expect(err).To(MatchError("it has no stream rhel-8: set spec.osImageStream.name to one of rhel-9"))
		_, err = s.For("", "s390x")
		g.Expect(err).To(MatchError("it has no images for s390x: set spec.arch to one of amd64"))
	})
	t.Run("When a release has no list it should say so", func(t *testing.T) {
		_, err := (*bootimages.Streams)(nil).For("", "amd64")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("lists no images")))
	})
	for name, bad := range map[string][]byte{
		"no YAML": []byte("\t"), "no JSON": file("stream", "{"), "no list": []byte("a: b"),
		"a text with a line in it": file("stream", `{"architectures": {"x86_64": {"images": {"kubevirt": {"digest-ref": "a\nb"}}}}}`),
		"a text without an end":    file("stream", `{"architectures": {"x86_64": {"images": {"kubevirt": {"digest-ref": "`+strings.Repeat("a", 3000)+`"}}}}}`),
	} {
		t.Run("When the file holds "+name+" it should be refused", func(t *testing.T) {
			_, err := bootimages.Parse(bad)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(bootimages.Path)))
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file("stream", stream))
	f.Fuzz(func(_ *testing.T, data []byte) {
		s, err := bootimages.Parse(data)
		if err == nil {
			_, _ = s.For("rhel-9", "amd64")
		}
	})
}
