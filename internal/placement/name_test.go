package placement

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
)

func TestObjectName(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"When it can be a name it should stay":                        {"pair-a", "pair-a"},
		"When it has a dot it should stay":                            {"rack1.pair-a", "rack1.pair-a"},
		"When it has capital letters and _ they should be replaced":   {"Pair_A", "pair-a-3994b59d"},
		"When it begins with what no name begins with that should go": {"_A", "a-26f5ad23"},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(ObjectName(tc.text)).To(Equal(tc.want)) })
	}
	t.Run("When texts differ their names should, and be names of objects and values of labels", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			label := rapid.StringMatching(`[A-Za-z0-9]([-A-Za-z0-9_.]{0,70}[A-Za-z0-9])?`)
			a, b := label.Draw(t, "a"), label.Draw(t, "b")
			for _, name := range []string{ObjectName(a), ObjectName(b)} {
				if problems := append(validation.IsDNS1123Subdomain(name), validation.IsValidLabelValue(name)...); len(problems) > 0 {
					t.Fatal(name, problems)
				}
			}
			if a != b && ObjectName(a) == ObjectName(b) {
				t.Fatalf("%s and %s are both %s", a, b, ObjectName(a))
			}
		})
	})
}

func TestWarmNames(t *testing.T) {
	g := NewWithT(t)
	sizes := []schedulingv1alpha1.SizeConfiguration{{Name: "small"}, {Name: "Large"}, {Name: strings.Repeat("x", 63)}}
	for i := range sizes {
		sizes[i].Management = &schedulingv1alpha1.Management{Placeholders: 1}
	}
	list := Warm(sizes, nil)
	g.Expect(list).To(HaveLen(3))
	g.Expect(list[0].Name).To(Equal("placeholder-small-0"))
	for i, p := range list {
		d := p.Deployment(Namespace, "registry.invalid/operator:1", nil)
		g.Expect(validation.IsDNS1123Subdomain(d.Name)).To(BeEmpty(), d.Name)
		g.Expect(d.Spec.Template.Spec.NodeSelector).To(ContainElement(sizes[i].Name), "nodes have the size as it is written")
		for _, value := range d.Labels {
			g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty(), value)
		}
		g.Expect(d.Spec.Replicas).To(Equal(ptr.To[int32](2)))
	}
}
