package migration

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/platform"
)

// definitions of a platform's kinds and Cluster API's, by name.
func definitions(t *testing.T, name string, private bool) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	g, out := NewWithT(t), map[string]*apiextensionsv1.CustomResourceDefinition{}
	own, err := config.CRDs("default")
	g.Expect(err).NotTo(HaveOccurred())
	read := config.CAPICRDs
	if private {
		own, read = nil, config.PrivateCAPICRDs
	}
	core, err := read()
	g.Expect(err).NotTo(HaveOccurred())
	provider, err := config.ProviderCRDs(name, private)
	g.Expect(err).NotTo(HaveOccurred())
	for _, list := range [][]*apiextensionsv1.CustomResourceDefinition{own, core, provider} {
		for _, crd := range list {
			if translate.InDomain(crd.Spec.Group) {
				out[crd.Name] = crd
			}
		}
	}
	return out
}

// TestEveryPlatform is what a platform has to keep so that its hosted clusters can be moved, in both directions.
func TestEveryPlatform(t *testing.T) {
	for _, name := range platform.Supported() {
		p, err := platform.For(hyperv1.PlatformType(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Run("When hosted clusters are on "+name+" each definition should have a twin of the same versions and names", func(t *testing.T) {
			g := NewWithT(t)
			twins := definitions(t, name, true)
			for _, crd := range definitions(t, name, false) {
				twin := twins[crd.Spec.Names.Plural+"."+translate.Group(crd.Spec.Group)]
				g.Expect(twin).NotTo(BeNil(), "%s has no twin", crd.Name)
				g.Expect(twin.Spec.Names.Kind).To(Equal(crd.Spec.Names.Kind))
				served := func(crd *apiextensionsv1.CustomResourceDefinition) (out []string) {
					for _, v := range crd.Spec.Versions {
						if v.Served {
							out = append(out, v.Name)
						}
					}
					return out
				}
				g.Expect(served(twin)).To(ContainElements(served(crd)), crd.Name)
			}
		})
		t.Run("When hosted clusters are on "+name+" its machines should be Cluster API's, be moved there and back, or there should be none", func(t *testing.T) {
			g := NewWithT(t)
			kind := p.Traits().TemplateKind
			if !p.Traits().Managed {
				g.Expect(kind.Empty()).To(BeTrue(), "without managed machines there is nothing to move")
				return
			}
			if !translate.InDomain(kind.Group) {
				return // never moved: whoever refers to it finds it where it was
			}
			cluster := object(translate.Standard, "v1beta2", "Cluster", "n", "c", nil)
			cluster.SetUID("old")
			u := object(kind.Group, kind.Version, kind.Kind, "n", "t", map[string]any{"template": map[string]any{"spec": map[string]any{"size": "m"}}})
			u.SetOwnerReferences(ownedBy(cluster))
			there, err := copyOf(Object{u, schema.GroupVersionResource{}}, map[types.UID]types.UID{"old": "new"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(translate.IsPrivate(there.GroupVersionKind().Group)).To(BeTrue())
			g.Expect(there.GetOwnerReferences()[0]).To(And(HaveField("APIVersion", translate.Private+"/v1beta2"), HaveField("UID", types.UID("new"))))
			back, err := copyOf(Object{there, schema.GroupVersionResource{}}, map[types.UID]types.UID{"new": "old"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(different(Object{there, schema.GroupVersionResource{}}, Object{back, schema.GroupVersionResource{}}, map[types.UID]types.UID{"new": "old"})).To(BeEmpty())
			g.Expect(back.Object["spec"]).To(Equal(u.Object["spec"]))
			g.Expect(back.GroupVersionKind()).To(Equal(kind))
			g.Expect(back.GetOwnerReferences()).To(Equal(u.GetOwnerReferences()))
		})
	}
}
