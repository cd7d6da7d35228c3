package revision

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"hcp.internal/api/packages/v1alpha1"
)

func template(value string) v1alpha1.ObjectSetTemplate {
	return v1alpha1.ObjectSetTemplate{
		Metadata: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: v1alpha1.ObjectSetTemplateSpec{
			Phases: []v1alpha1.ObjectSetTemplatePhase{{Name: "deploy", Objects: []v1alpha1.ObjectSetObject{{
				Object: unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "cm"}, "data": map[string]any{"b": "2", "a": value},
				}},
				CollisionProtection: v1alpha1.CollisionProtectionPrevent,
			}}}},
			AvailabilityProbes: []v1alpha1.ObjectSetProbe{{
				Selector: v1alpha1.ProbeSelector{Kind: &v1alpha1.PackageProbeKindSpec{Group: "apps", Kind: "Deployment"}},
				Probes:   []v1alpha1.Probe{{Condition: &v1alpha1.ProbeConditionSpec{Type: "Available", Status: "True"}}},
			}},
		},
	}
}

// Another hash means that every deployment in every cluster gets a new revision. If this test fails, a type or a field of the API has moved.
func TestHashStays(t *testing.T) {
	g := NewWithT(t)
	g.Expect(TemplateHash(template("1"), nil)).To(Equal("78df6fdc67"))
	g.Expect(TemplateHash(template("1"), ptr.To[int32](0))).To(Equal("5b466b7bd7"))
	g.Expect(TemplateHash(template("1"), ptr.To[int32](1))).To(Equal("79b45694"))
}

func TestHash(t *testing.T) {
	t.Run("When a template is copied it should stay, and when a value changes it should not", rapid.MakeCheck(func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		one, copied, other := template(a), *ptr.To(template(a)).DeepCopy(), template(b)
		if TemplateHash(one, nil) != TemplateHash(copied, nil) {
			t.Fatal("a copy has another hash")
		}
		if a != b && TemplateHash(one, nil) == TemplateHash(other, nil) {
			t.Fatalf("%q and %q have the same hash", a, b)
		}
	}))
	t.Run("When it is part of a name it should be a label of DNS", rapid.MakeCheck(func(t *rapid.T) {
		for _, c := range Hash(rapid.String().Draw(t, "value"), nil) {
			if c < '0' || (c > '9' && c < 'a') || c > 'z' {
				t.Fatalf("character %q", c)
			}
		}
	}))
}
