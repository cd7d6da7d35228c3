package kubectlpackage

import (
	"archive/tar"
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/cli/clitest"
	"hcp.internal/platform/internal/packages/packagestest"
)

const bundleCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: shop-operator.v1.2.0, annotations: {operatorframework.io/suggested-namespace: shop-operators}}
spec:
  installModes: [{type: OwnNamespace, supported: true}, {type: AllNamespaces, supported: MODE}]
  install:
    strategy: deployment
    spec:
      permissions:
      - {serviceAccountName: shop-operator, rules: [{apiGroups: [""], resources: [configmaps], verbs: ["*"]}]}
      clusterPermissions:
      - {serviceAccountName: shop-operator, rules: [{apiGroups: [shop.example.com], resources: [shops], verbs: ["*"]}]}
      deployments:
      - name: shop-operator
        label: {app: shop}
        spec:
          replicas: 1
          selector: {matchLabels: {app: shop}}
          template:
            metadata: {labels: {app: shop}, annotations: {a: b}}
            spec:
              serviceAccountName: shop-operator
              containers: [{name: operator, image: "quay.io/shop/operator:v1.2.0"}]
`

// pushBundle pushes an image with these files.
func pushBundle(t *testing.T, tag string, files map[string]string) {
	t.Helper()
	g := NewWithT(t)
	var buf bytes.Buffer
	archive := tar.NewWriter(&buf)
	for file, content := range files {
		g.Expect(archive.WriteHeader(&tar.Header{Name: file, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o644})).To(Succeed())
		_, err := archive.Write([]byte(content))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(archive.Close()).To(Succeed())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	g.Expect(err).NotTo(HaveOccurred())
	img, err := mutate.AppendLayers(empty.Image, layer)
	g.Expect(err).NotTo(HaveOccurred())
	ref, err := name.ParseReference(tag)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Write(ref, img)).To(Succeed())
}

func TestBundle(t *testing.T) {
	r := packagestest.NewRegistry(t)
	files := map[string]string{
		"metadata/annotations.yaml": "annotations: {operators.operatorframework.io.bundle.package.v1: shop-operator}\n",
		"manifests/shops.crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.shop.example.com}
spec:
  group: shop.example.com
  names: {kind: Shop, plural: shops}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`,
		"manifests/metrics.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: shop-operator-metrics}\nspec: {selector: {app: shop}, ports: [{port: 8443}]}\n",
	}
	for name, mode := range map[string]string{
		"When an operator watches all namespaces a package should be made in which it does": "true",
		"When an operator watches its own namespace it should have rights there alone":      "false",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			files["manifests/shop.clusterserviceversion.yaml"] = strings.ReplaceAll(bundleCSV, "MODE", mode)
			tag := r.Host + "/shop-bundle:" + mode
			pushBundle(t, tag, files)
			out := filepath.Join(t.TempDir(), "shop")
			g.Expect(run(t, nil, "kickstart", out, "-b", tag)).To(HavePrefix("Kickstarted the \"shop\" package with "))
			clitest.Golden(t, "bundle-"+mode+".txt", contents(t, out))
			g.Expect(run(t, nil, "validate", out)).To(Equal("Package validated successfully!"))
			g.Expect(run(t, nil, "kickstart", out, "-b", tag)).To(Equal("Error: kickstarting package: package folder already exists: " + out + "\n"))
		})
	}
	for name, tc := range map[string]struct{ from, to, want string }{
		"When a bundle has webhooks it should say why they can't be":     {"\nspec:\n", "\nspec:\n  webhookdefinitions: [{}]\n", "spec.webhookdefinitions are not supported"},
		"When a bundle has API services it should say why they can't be": {"\nspec:\n", "\nspec:\n  apiservicedefinitions: {owned: [{}]}\n", "spec.apiservicedefinitions.owned are not supported"},
		"When an image is no bundle it should say so":                    {"kind: ClusterServiceVersion", "kind: Other", "it is no bundle of format registry+v1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			files["manifests/shop.clusterserviceversion.yaml"] = strings.Replace(strings.ReplaceAll(bundleCSV, "MODE", "true"), tc.from, tc.to, 1)
			tag := r.Host + "/shop-bundle:bad"
			pushBundle(t, tag, files)
			out := filepath.Join(t.TempDir(), "shop")
			g.Expect(run(t, nil, "kickstart", out, "-b", tag)).To(And(HavePrefix("Error: kickstarting package: reading bundle "), ContainSubstring(tc.want)))
			g.Expect(out).NotTo(BeADirectory())
		})
	}
}
