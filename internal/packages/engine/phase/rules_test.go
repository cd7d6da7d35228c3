package phase

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestForeignOwners: who owns an object of another cluster is said in an annotation. A template that brings one would never be done.
func TestForeignOwners(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "namespace": "b", "annotations": map[string]any{"package-operator.run/owners": "[]"}},
	}}
	known := target{registered: true, namespaced: true}
	for name, tc := range map[string]struct {
		rules Rules
		want  int
	}{
		"When objects live in another cluster it should be refused":   {OtherCluster(), 1},
		"When objects have owner references it should mean nothing":   {SameCluster(), 0},
		"When a phase has no class it should mean nothing there, too": {Unclassed(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tc.rules.checkNew(Owner{Namespace: "b"}, obj, known)).To(HaveLen(tc.want))
			g.Expect(tc.rules.check(Owner{Namespace: "b"}, obj, known)).To(BeEmpty(), "what was written before can be torn down")
		})
	}
}
