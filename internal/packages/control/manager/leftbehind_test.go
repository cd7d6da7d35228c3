package manager_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	. "hcp.internal/platform/internal/packages/packagestest"
)

// TestLeftBehind: what is deleted with --cascade=orphan and installed again begins at revision 1, and finds objects that a higher number has written.
func TestLeftBehind(t *testing.T) {
	for _, protection := range []v1alpha1.CollisionProtection{"Prevent", "IfNoController", "None"} {
		t.Run("When an installation that is gone left an object behind it should go by its protection, "+string(protection), func(t *testing.T) {
			t.Parallel()
			g, w := NewWithT(t), Start(t)
			ns := w.Namespace(t)
			before := ObjectSet(ns, "before", 3, Phase("one", ConfigMap("cm", map[string]any{"v": "before"})))
			g.Expect(w.Client.Create(t.Context(), before)).To(Succeed())
			w.Eventually(t, before, available(before))
			g.Expect(w.Client.Delete(t.Context(), before, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
			w.Gone(t, before)
			cm := configMap(ns, "cm")
			g.Expect(get(w, t, cm)).To(Succeed())
			g.Expect(cm.OwnerReferences).To(BeEmpty())
			g.Expect(cm.Annotations).To(HaveKeyWithValue("package-operator.run/revision", "3"))

			obj := ConfigMap("cm", map[string]any{"v": "again"})
			obj.CollisionProtection = protection
			again := ObjectSet(ns, "again", 1, Phase("one", obj))
			g.Expect(w.Client.Create(t.Context(), again)).To(Succeed())
			if protection == "Prevent" {
				w.Eventually(t, again, HasCondition(again, &again.Status.Conditions, "Available", "False", "CollisionDetected",
					fmt.Sprintf("object %[1]s/cm kind:ConfigMap: refusing adoption, object /v1, Kind=ConfigMap %[1]s/cm not owned by previous revision: nobody owns it, "+
						"and annotation package-operator.run/revision says that revision 3 of an installation that is gone has written it; "+
						"delete the object, or set its collision protection to IfNoController to have it adopted", ns)))
				g.Expect(get(w, t, cm)).To(Succeed())
				g.Expect(cm.Data).To(HaveKeyWithValue("v", "before"))
				return
			}
			w.Eventually(t, again, HasCondition(again, &again.Status.Conditions, "Succeeded", "True", "RolloutSuccess", ""))
			g.Expect(available(again)()).To(Succeed())
			g.Expect(meta.FindStatusCondition(again.Status.Conditions, "InTransition")).To(BeNil())
			g.Expect(get(w, t, cm)).To(Succeed())
			g.Expect(cm.Data).To(HaveKeyWithValue("v", "again"))
			g.Expect(cm.Annotations).To(HaveKeyWithValue("package-operator.run/revision", "1"))
			g.Expect(metav1.GetControllerOf(cm).Name).To(Equal("again"))
		})
	}
	t.Run("When a newer revision that is still there lost an object an earlier one should not take it", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		free := func(value string) v1alpha1.ObjectSetTemplatePhase {
			obj := ConfigMap("cm", map[string]any{"v": value})
			obj.CollisionProtection = v1alpha1.CollisionProtectionIfNoController
			return Phase("one", obj)
		}
		lifecycle := func(os *v1alpha1.ObjectSet, state v1alpha1.LifecycleState) {
			patch := fmt.Sprintf(`{"spec":{"lifecycleState":%q}}`, state)
			g.Expect(w.Client.Patch(t.Context(), os, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
		}
		paused := func(os *v1alpha1.ObjectSet) {
			lifecycle(os, v1alpha1.LifecycleStatePaused)
			w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "Paused", "True", "Paused", ""))
		}
		early := ObjectSet(ns, "early", 1, free("1"))
		g.Expect(w.Client.Create(t.Context(), early)).To(Succeed())
		w.Eventually(t, early, available(early))
		late := ObjectSet(ns, "late", 2, free("2"))
		late.Spec.Previous = []v1alpha1.PreviousRevisionReference{{Name: "early"}}
		g.Expect(w.Client.Create(t.Context(), late)).To(Succeed())
		w.Eventually(t, late, available(late))
		paused(late)
		paused(early)
		cm := configMap(ns, "cm")
		g.Expect(w.Client.Patch(t.Context(), cm, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"ownerReferences":null}}`)))).To(Succeed())
		lifecycle(early, v1alpha1.LifecycleStateActive) // it looks at its objects
		w.Eventually(t, early, func() error {
			if meta.FindStatusCondition(early.Status.Conditions, "Paused") != nil {
				return errors.New("still paused")
			}
			return available(early)()
		})
		g.Expect(get(w, t, cm)).To(Succeed())
		g.Expect(cm.Data).To(HaveKeyWithValue("v", "2"))
		g.Expect(cm.OwnerReferences).To(BeEmpty())
		lifecycle(late, v1alpha1.LifecycleStateActive)
		w.Eventually(t, cm, func() error {
			if c := metav1.GetControllerOf(cm); c == nil || c.Name != "late" {
				return fmt.Errorf("the controller is %v", c)
			}
			return nil
		})
		g.Expect(cm.Data).To(HaveKeyWithValue("v", "2"))
	})
}
