package operatorpackage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/fixture"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

const image = "registry.example.com/package-operator@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

func TestFiles(t *testing.T) {
	t.Run("When the image has no digest it should say what is missing", func(t *testing.T) {
		_, err := Files("registry.example.com/package-operator:1")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`image "registry.example.com/package-operator:1" has to have a digest`)))
	})
	t.Run("When it is checked as every package is it should have no mistakes", func(t *testing.T) {
		g := NewWithT(t)
		files, err := Files(image)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(fixture.Static(t.Context(), files)).To(Succeed())
		g.Expect(fixture.Check(t.Context(), files, "")).To(Succeed())
		names, err := load.Components(files)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names).To(ConsistOf("remote-phase", "hosted-cluster"))
	})
}

// TestGolden compares what each test case of each component renders to; an API server takes it as it is.
func TestGolden(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	c := client.WithFieldValidation(env.Client(t, packagestest.Scheme(t)), "Strict")
	files, err := Files(image)
	g.Expect(err).NotTo(HaveOccurred())
	for _, component := range []string{"", "remote-phase", "hosted-cluster"} {
		p, err := load.Load(t.Context(), files, component)
		g.Expect(err).NotTo(HaveOccurred())
		for _, tc := range p.Manifest.Test.Template {
			name := filepath.Join(p.Manifest.Name, tc.Name)
			t.Run(fmt.Sprintf("When it is rendered for %s it should be as stored, and valid", name), func(t *testing.T) {
				g := NewWithT(t)
				rendered, err := fixture.Render(t.Context(), p, tc.Context)
				g.Expect(err).NotTo(HaveOccurred())
				template, err := rendered.Template(p, tc.Context.Package.Name)
				g.Expect(err).NotTo(HaveOccurred())
				text := &strings.Builder{}
				for _, phase := range template.Phases {
					fmt.Fprintf(text, "# phase %s of class %q\n", phase.Name, phase.Class)
					for _, o := range phase.Objects {
						write(g, text, o)
						accepted(t, c, env.Namespace(t), o.Object)
					}
				}
				compare(t, filepath.Join("testdata", name+".yaml"), text.String())
			})
		}
	}
}

func write(g Gomega, text *strings.Builder, o packagesv1.ObjectSetObject) {
	if o.Object.GetKind() == "CustomResourceDefinition" { // of which there are golden files elsewhere
		fmt.Fprintf(text, "# definition %s\n", o.Object.GetName())
		return
	}
	raw, err := yaml.Marshal(o.Object.Object)
	g.Expect(err).NotTo(HaveOccurred())
	fmt.Fprintf(text, "---\n%s", raw)
}

// accepted has the API server look at an object without storing it, in a namespace that is there.
func accepted(t *testing.T, c client.Client, namespace string, obj unstructured.Unstructured) {
	t.Helper()
	o := obj.DeepCopy()
	if o.GetNamespace() != "" {
		o.SetNamespace(namespace)
	}
	if err := c.Create(t.Context(), o, client.DryRunAll); err != nil {
		t.Errorf("the API server refuses %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (make golden writes it)", err)
	}
	NewWithT(t).Expect(got).To(Equal(string(want)), "%s (make golden writes it)", path)
}
