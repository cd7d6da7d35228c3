package manager_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	. "hcp.internal/platform/internal/packages/packagestest"
)

func TestNewerRevision(t *testing.T) {
	t.Run("When a stranger with a higher number has an object it should be a collision", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		stranger := ObjectSet(ns, "db", 7, Phase("a", ConfigMap("cm", map[string]any{"v": "theirs"})))
		g.Expect(w.Client.Create(t.Context(), stranger)).To(Succeed())
		w.Eventually(t, stranger, available(stranger))
		os := ObjectSet(ns, "web", 1, Phase("a", ConfigMap("cm", map[string]any{"v": "ours"})))
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "Available", "False", "CollisionDetected", ""))
		cm := configMap(ns, "cm")
		g.Expect(get(w, t, cm)).To(Succeed())
		g.Expect(cm.Data).To(HaveKeyWithValue("v", "theirs"))
	})
	t.Run("When a revision that follows has taken an object over it should stay there, and the earlier one be available", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		first := ObjectSet(ns, "alone-1", 1, Phase("a", ConfigMap("cm", map[string]any{"v": "1"})))
		g.Expect(w.Client.Create(t.Context(), first)).To(Succeed())
		w.Eventually(t, first, available(first))
		second := ObjectSet(ns, "alone-2", 2, Phase("a", ConfigMap("cm", map[string]any{"v": "2"})))
		second.Spec.Previous = []v1alpha1.PreviousRevisionReference{{Name: "alone-1"}}
		g.Expect(w.Client.Create(t.Context(), second)).To(Succeed())
		w.Eventually(t, second, available(second))
		// A pause and its end make the earlier one look at its objects again.
		for _, state := range []v1alpha1.LifecycleState{v1alpha1.LifecycleStatePaused, v1alpha1.LifecycleStateActive} {
			patch := fmt.Sprintf(`{"spec":{"lifecycleState":%q}}`, state)
			g.Expect(w.Client.Patch(t.Context(), first, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
		}
		w.Eventually(t, first, func() error {
			if len(first.Status.ControllerOf) != 0 {
				return fmt.Errorf("controls %v", first.Status.ControllerOf)
			}
			return available(first)()
		})
		cm := configMap(ns, "cm")
		g.Expect(get(w, t, cm)).To(Succeed())
		g.Expect(cm.Data).To(HaveKeyWithValue("v", "2"))
	})
}
