package manager_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	. "hcp.internal/platform/internal/packages/packagestest"
)

// An apply that takes the last of its fields away from an object within a custom resource is refused by the API server, for a null that it makes itself.
func TestEmptiedObject(t *testing.T) {
	each(t, func(t *testing.T, class string) {
		t.Run("When a revision takes the last field of an object in a custom resource the object should be empty", func(t *testing.T) {
			g, w := NewWithT(t), Start(t)
			ns := w.Namespace(t)
			custom := func(config map[string]any) v1alpha1.ObjectSetTemplatePhase {
				return classed(class, Phase("a", inNamespace(ns, Object(map[string]any{
					"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Package", "metadata": map[string]any{"name": "inner"},
					"spec": map[string]any{"image": "registry.example.com/none:1", "paused": true, "config": config},
				}))))
			}
			od := ObjectDeployment(ns, "web", custom(map[string]any{"a": "1"}))
			g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
			w.Eventually(t, od, latest(od))
			setTemplate(t, w, od, custom(map[string]any{}))
			w.Eventually(t, od, func() error {
				if od.Status.Revision != 2 {
					return fmt.Errorf("at revision %d", od.Status.Revision)
				}
				return latest(od)()
			})
			inner := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "inner"}}
			g.Expect(get(w, t, inner)).To(Succeed())
			g.Expect(string(inner.Spec.Config.Raw)).To(Equal("{}"))
			g.Expect(inner.Annotations).To(HaveKeyWithValue(v1alpha1.RevisionAnnotation, "2"))
		})
	})
}
