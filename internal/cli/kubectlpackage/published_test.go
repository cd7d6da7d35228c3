package kubectlpackage

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/packages/packagestest"
)

// manifestOf is that of package app: fields of its spec, and what follows that.
func manifestOf(spec, rest string) string {
	return "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: app}\nspec: {scopes: [Namespaced], " + spec + "}\n" + rest
}

// appOf is a folder with only such a manifest.
func appOf(t *testing.T, spec, rest string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "app")
	write(t, dir, "manifest.yaml", manifestOf(spec, rest))
	return dir
}

// TestPublished is about what scripts that were written for the published plugin rely on.
func TestPublished(t *testing.T) {
	const built = "Package built successfully!"
	t.Run("When tags and labels are lists it should take them apart at commas", func(t *testing.T) {
		g := NewWithT(t)
		r := packagestest.NewRegistry(t)
		g.Expect(run(t, nil, "build", copyOf(t, example), "-t", r.Host+"/web:a,"+r.Host+"/web:b", "-l", "x=1,y=2", "--push", "--output-format", "")).To(Equal(built))
		for _, tag := range []string{"a", "b"} {
			g.Expect(run(t, nil, "validate", "--pull", r.Host+"/web:"+tag)).To(Equal("Package validated successfully!"))
		}
		g.Expect(run(t, nil, "build", copyOf(t, example), "-l", "x=")).To(Equal("Error: parsing label \"x\", value is empty\n"))
	})
	t.Run("When the archive's folder is missing it should be made", func(t *testing.T) {
		g := NewWithT(t)
		target := filepath.Join(t.TempDir(), "some", "where", "web.tar")
		g.Expect(run(t, nil, "build", copyOf(t, example), "-t", "registry.example/web:a", "--output", target)).To(Equal(built))
		g.Expect(target).To(BeARegularFile())
	})
	t.Run("When a registry's certificate is its own it should be talked to with --insecure alone", func(t *testing.T) {
		g := NewWithT(t)
		server := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
		defer server.Close()
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		tag := strings.TrimPrefix(server.URL, "https://") + "/web:v1"
		dir := copyOf(t, example)
		g.Expect(run(t, nil, "build", dir, "-t", tag, "--push")).To(HavePrefix("Error: building from source: pushing "))
		g.Expect(run(t, nil, "build", dir, "-t", tag, "--push", "--insecure")).To(Equal(built))
		g.Expect(run(t, nil, "validate", "--pull", tag)).To(HavePrefix("Error: validating package: getting package from remote reference: "))
		g.Expect(run(t, nil, "validate", "--pull", tag, "--insecure")).To(Equal("Package validated successfully!"))
	})
	t.Run("When the lock file is broken update should write it anew", func(t *testing.T) {
		g := NewWithT(t)
		dir := copyOf(t, example)
		for _, broken := range []string{
			"{", "apiVersion: v1\nkind: Secret\n",
			"apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nspec: {images: [{name: a, image: b, digest: x}]}\n",
		} {
			write(t, dir, "manifest.lock.yaml", broken)
			g.Expect(run(t, nil, "update", dir)).To(Equal("Package updated successfully!\n"), broken)
			g.Expect(run(t, nil, "update", dir)).To(Equal("Package is already up-to-date\n"))
			g.Expect(run(t, nil, "validate", dir)).To(Equal("Package validated successfully!"))
		}
	})
	t.Run("When a package has no images update should write a lock file all the same, once, and none for its components", func(t *testing.T) {
		g := NewWithT(t)
		dir := appOf(t, "components: {}, phases: [{name: a}]", "")
		write(t, dir, "components/part/manifest.yaml", manifestOf("phases: [{name: a}]", ""))
		g.Expect(run(t, nil, "update", dir)).To(Equal("Package updated successfully!\n"))
		g.Expect(readText(t, dir, "manifest.lock.yaml")).To(Equal(
			"apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nmetadata:\n  creationTimestamp: \"2026-01-01T12:00:00Z\"\nspec: {}\n"))
		g.Expect(filepath.Join(dir, "components/part/manifest.lock.yaml")).NotTo(BeAnExistingFile())
		g.Expect(run(t, nil, "update", dir)).To(Equal("Package is already up-to-date\n"))
		g.Expect(run(t, nil, "validate", dir)).To(Equal("Package validated successfully!"))
	})
	t.Run("When a manifest has a field that nobody knows it should warn, and not refuse it", func(t *testing.T) {
		g := NewWithT(t)
		dir := copyOf(t, example)
		write(t, dir, "manifest.yaml", strings.Replace(readText(t, dir, "manifest.yaml"), "\nspec:\n", "\nspec:\n  phasez: []\n", 1))
		g.Expect(run(t, nil, "validate", dir)).To(Equal("Warning: manifest.yaml: unknown field \"spec.phasez\"\nPackage validated successfully!"))
	})
	t.Run("When a package has what is seldom meant it should warn, and not refuse it", func(t *testing.T) {
		g := NewWithT(t)
		const twice = "{name: t, context: {package: {metadata: {name: x, namespace: shop}}}}"
		dir := appOf(t, "phases: [{name: Deploy_All}], images: [{name: a, image: quay.io/a/a:1}]", "test: {template: ["+twice+", "+twice+"]}\n")
		write(t, dir, "manifest.lock.yaml", `apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifestLock
spec: {images: [{name: a, image: "quay.io/a/a:1", digest: short}]}
`)
		write(t, dir, "a.yaml", `apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: , labels: {a: , b: c}, annotations: {package-operator.run/phase: Deploy_All, x: }}
`)
		out := run(t, nil, "validate", dir)
		g.Expect(out).To(And(ContainSubstring(`spec.phases[0].name: "Deploy_All" can't have a class`), ContainSubstring(`test.template[1].name: "t" is there twice`),
			ContainSubstring(`spec.images[0].digest: no registry has an image "short"`), HaveSuffix("Package validated successfully!")))
		g.Expect(run(t, nil, "tree", dir)).To(Equal("app\nPackage shop/x\n└── Phase Deploy_All\n    └── /v1, Kind=ConfigMap /a\n"))

		write(t, dir, "b.yaml", "apiVersion: v1\nkind: \nmetadata: {name: b, annotations: {package-operator.run/phase: Deploy_All}}\n")
		g.Expect(run(t, nil, "validate", dir)).To(ContainSubstring("GroupVersionKind not set"))
		write(t, dir, "manifest.yaml", strings.Replace(readText(t, dir, "manifest.yaml"), "{name: Deploy_All}", "{name: Deploy_All, class: hosted-cluster}", 1))
		g.Expect(run(t, nil, "validate", dir)).To(ContainSubstring("without a class any name will do"))
	})
	t.Run("When test.kubeconform is asked for an object that is wrong should fail the build", func(t *testing.T) {
		g := NewWithT(t)
		dir := appOf(t, "phases: [{name: a}]", `test:
  kubeconform: {kubernetesVersion: v1.34.0}
  template: [{name: defaults, context: {package: {metadata: {name: x, namespace: y}}}}]
`)
		const meta = ", annotations: {package-operator.run/phase: a}}\n"
		write(t, dir, "thing.yaml", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a"+meta)
		write(t, dir, "service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a"+meta+"spec: {ports: [{port: 80}]}\n")
		g.Expect(run(t, nil, "validate", dir)).To(Equal(
			"Warning: test.kubeconform: there is no schema of Thing.example.com here, so that objects of that kind are not checked\nPackage validated successfully!"))
		write(t, dir, "service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a"+meta+"spec: {portz: [{port: 80}]}\n")
		for _, command := range []string{"validate", "build"} {
			g.Expect(run(t, nil, command, dir)).To(ContainSubstring(`testcase "defaults": Kubeconform rejected schema in service.yaml idx 0: Service a is invalid: unknown field "spec.portz"`))
		}
	})
	t.Run("When a template does not find a key it should print nothing, and the file should keep its last newline", func(t *testing.T) {
		g := NewWithT(t)
		dir := appOf(t, `phases: [{name: a}], filter: {conditions: [{name: never, expression: "false"}]}`,
			"test: {template: [{name: defaults, context: {package: {metadata: {name: x, namespace: y}}}}]}\n")
		write(t, dir, "a.yaml.gotmpl", `apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {package-operator.run/phase: a}}
data: {missing: "{{ get .config "x" }}{{ index .config "y" }}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, annotations: {package-operator.run/phase: a, package-operator.run/condition: cond.never}}
`)
		g.Expect(run(t, nil, "validate", dir)).To(Equal("Package validated successfully!"))
		got, err := os.ReadFile(filepath.Join(dir, ".test-fixtures/defaults/a.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(HaveSuffix("data: {missing: \"\"}\n"))
	})
	t.Run("When a fixture differs it should show the difference as diff does", func(t *testing.T) {
		g := NewWithT(t)
		dir := appOf(t, "phases: [{name: a}]", "test: {template: [{name: one, context: {package: {metadata: {name: x, namespace: shop}}}}]}\n")
		const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, annotations: {package-operator.run/phase: a}}\n"
		write(t, dir, "a.yaml", strings.Replace(object, "NAME", "a", 1))
		write(t, dir, "b.yaml", strings.Replace(object, "NAME", "b", 1))
		write(t, dir, ".test-fixtures/one/a.yaml", strings.TrimSuffix(strings.Replace(object, "NAME", "x", 1), "\n"))
		write(t, dir, ".test-fixtures/one/c.yaml", "")
		g.Expect(run(t, nil, "validate", dir)).To(Equal(`Error: validating package: File mismatch against fixture in a.yaml: Testcase "one"
--- FIXTURE/a.yaml
+++ ACTUAL/a.yaml
@@ -1,3 +1,3 @@
 apiVersion: v1
 kind: ConfigMap
-metadata: {name: x, annotations: {package-operator.run/phase: a}}
\ No newline at end of file
+metadata: {name: a, annotations: {package-operator.run/phase: a}}

File mismatch against fixture in b.yaml: Testcase "one"
file b.yaml not found in fixtures folder
File mismatch against fixture in c.yaml: Testcase "one"
file c.yaml should not exist, filtered or empty after template render
`))
	})
	t.Run("When the version is asked for it should say whose it is", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(run(t, nil, "--version")).To(HavePrefix("kubectl-package version "))
	})
}
