package platform_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/platform/platformtest"
	"hcp.internal/platform/internal/release/bootimages"
)

// imported is the image that machines of an example boot from.
func imported(t testing.TB, e platformtest.Example) *unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	p, err := platform.For(e.HostedCluster.Spec.Platform.Type)
	g.Expect(err).NotTo(HaveOccurred())
	in := machine.Input{HostedCluster: e.HostedCluster, NodePool: e.NodePool, Release: e.Release}
	template, err := p.MachineTemplate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(template.Companions).To(HaveLen(1))
	image := template.Companions[0].(*unstructured.Unstructured)
	boots, _, err := unstructured.NestedMap(template.Object.(*unstructured.Unstructured).Object, "spec", "template", "spec")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fmt.Sprint(boots)).To(ContainSubstring("imageRef:map[name:%s]", image.GetName()))
	set, _ := p.(platform.PoolReporter).PoolConditions(in)
	g.Expect(set).To(ConsistOf(HaveField("Message", ContainSubstring("%q", image.GetName()))))
	return image
}

// TestImageNames: an image that exists stays as it is, so what another pool needs must have another name. Names of what pools had before must not change, or
// their machines would be replaced.
func TestImageNames(t *testing.T) {
	t.Run("When pools on OpenStack have streams each image should have its own name, and that of the release the one that it had", func(t *testing.T) {
		g := NewWithT(t)
		in := read(t, "openstack")
		for stream, want := range map[string][2]string{
			"":        {"rhcos-4.22.1", "https://rhcos.example.com/openstack.qcow2.gz"},
			"rhel-9":  {"rhcos-4.22.1", "https://rhcos.example.com/openstack.qcow2.gz"},
			"rhel-10": {"rhcos-4.22.1-rhel-10", "https://rhcos.example.com/ten.qcow2.gz"},
		} {
			e := in.example()
			images := e.Release.BootImages
			images.Named = map[string]bootimages.Stream{"rhel-9": images.Default, "rhel-10": {"amd64": &bootimages.Images{OpenStack: bootimages.Download{URL: "https://rhcos.example.com/ten.qcow2.gz"}}}}
			e.NodePool.Spec.OSImageStream.Name = stream
			image := imported(t, e)
			g.Expect(image.GetName()).To(Equal(want[0]))
			g.Expect(fmt.Sprint(image.Object)).To(And(ContainSubstring(want[1]), ContainSubstring("name:demo-%s]", want[0])))
		}
	})
	t.Run("When pools on PowerVS store images in different ways each image should have its own name, and that of the defaults the one that it had", func(t *testing.T) {
		g := NewWithT(t)
		in := read(t, "powervs")
		for name, pools := range map[string][]hyperv1.PowerVSNodePoolPlatform{
			"9-6-20260101-0":              {{}, {StorageType: "tier1"}, {ImageDeletePolicy: "delete"}, {StorageType: "tier1", ImageDeletePolicy: "delete"}},
			"9-6-20260101-0-tier3":        {{StorageType: "tier3"}, {StorageType: "tier3", ImageDeletePolicy: "delete"}},
			"9-6-20260101-0-retain":       {{ImageDeletePolicy: "retain"}, {StorageType: "tier1", ImageDeletePolicy: "retain"}},
			"9-6-20260101-0-tier3-retain": {{StorageType: "tier3", ImageDeletePolicy: "retain"}},
		} {
			for i := range pools {
				e := in.example()
				e.NodePool.Spec.Platform.PowerVS = &pools[i]
				g.Expect(imported(t, e).GetName()).To(Equal(name), "%+v", pools[i])
			}
		}
	})
}
