package manager_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/revision"
	. "hcp.internal/platform/internal/packages/packagestest"
)

func latest(od *v1alpha1.ObjectDeployment) func() error {
	return HasCondition(od, &od.Status.Conditions, "Available", "True", "Available", "Latest Revision is Available.")
}

// setTemplate replaces the phases and waits for nothing.
func setTemplate(t *testing.T, w *World, od *v1alpha1.ObjectDeployment, phases ...v1alpha1.ObjectSetTemplatePhase) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(func() error {
		if err := get(w, t, od); err != nil {
			return err
		}
		od.Spec.Template.Spec.Phases = phases
		return w.Client.Update(t.Context(), od)
	}, Timeout).Should(Succeed())
}

func revisions(t *testing.T, w *World, ns string) map[string]v1alpha1.ObjectSet {
	t.Helper()
	list := &v1alpha1.ObjectSetList{}
	NewWithT(t).Expect(w.Client.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
	out := map[string]v1alpha1.ObjectSet{}
	for _, os := range list.Items {
		out[os.Name] = os
	}
	return out
}

func TestBrokenRevision(t *testing.T) {
	each(t, func(t *testing.T, class string) {
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		good := func(v string) v1alpha1.ObjectSetTemplatePhase {
			return classed(class, Phase("a", inNamespace(ns, ConfigMap("cm", map[string]any{"v": v}, "name", "cm"))))
		}
		od := ObjectDeployment(ns, "web", good("1"), classed(class, Phase("b", inNamespace(ns, ConfigMap("last", nil, "name", "last")))))
		od.Spec.Template.Spec.AvailabilityProbes = []v1alpha1.ObjectSetProbe{Probe("ConfigMap", ".metadata.name", ".metadata.annotations.name")}
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		w.Eventually(t, od, latest(od))
		first := revision.ObjectSetName("web", od.Status.TemplateHash)

		// The new revision's first phase never passes; the old one's object of another name keeps serving.
		setTemplate(t, w, od, classed(class, Phase("a", inNamespace(ns, ConfigMap("broken", nil, "name", "x")))), classed(class, Phase("b", inNamespace(ns, ConfigMap("last", map[string]any{"v": "2"}, "name", "last")))))
		w.Eventually(t, od, HasCondition(od, &od.Status.Conditions, "Available", "True", "Available", fmt.Sprintf("Previous Revision '%s' is still Available.", first)))
		g.Expect(HasCondition(od, &od.Status.Conditions, "Progressing", "True", "LatestRevisionPendingSuccess", "")()).To(Succeed())
		last := configMap(ns, "last")
		g.Consistently(func() string { _ = get(w, t, last); return last.Data["v"] }, quiet).Should(BeEmpty(), "the second phase stays with the old revision")

		setTemplate(t, w, od, good("3"))
		w.Eventually(t, od, latest(od))
		g.Expect(od.Status.Revision).To(Equal(int64(3)))
		w.Gone(t, configMap(ns, "broken"))
		w.Gone(t, last)
	})
}

func TestRevisionNames(t *testing.T) {
	t.Run("When a name is taken it should count the collision and use another", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		od := ObjectDeployment(ns, "web", Phase("a", ConfigMap("cm", nil)))
		taken := ObjectSet(ns, revision.ObjectSetName("web", stored(t, w, od)), 1, Phase("x"))
		g.Expect(w.Client.Create(t.Context(), taken)).To(Succeed())
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		w.Eventually(t, od, latest(od))
		g.Expect(od.Status.CollisionCount).To(HaveValue(Equal(int32(1))))
		g.Expect(get(w, t, taken)).To(Succeed())
		g.Expect(taken.Spec.LifecycleState).To(Equal(v1alpha1.LifecycleStateActive), "it is not ours")
	})
	t.Run("When a template goes back it should make a new revision and keep no more history than asked", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		od := ObjectDeployment(ns, "web", Phase("a", ConfigMap("cm", map[string]any{"v": "0"})))
		od.Spec.RevisionHistoryLimit = ptr.To[int32](1)
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		w.Eventually(t, od, latest(od))
		for i, v := range []string{"1", "0", "2"} {
			setTemplate(t, w, od, Phase("a", ConfigMap("cm", map[string]any{"v": v})))
			w.Eventually(t, od, func() error {
				if od.Status.Revision != int64(i+2) {
					return fmt.Errorf("at revision %d", od.Status.Revision)
				}
				return latest(od)()
			})
		}
		g.Eventually(func() int { return len(revisions(t, w, ns)) }, Timeout).Should(Equal(2), "the current revision and one before")
		g.Expect(get(w, t, configMap(ns, "cm"))).To(Succeed())
	})
	t.Run("When there are no phases it should make no revision", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		od := ObjectDeployment(ns, "web")
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		w.Eventually(t, od, HasCondition(od, &od.Status.Conditions, "Available", "False", "ObjectSetUnready", "No ObjectSet is available."))
		g.Expect(revisions(t, w, ns)).To(BeEmpty())
		g.Expect(meta.FindStatusCondition(od.Status.Conditions, "Progressing").Message).To(HavePrefix("The template has no phases"))
	})
}

// stored is the hash of a template as the API server gives it back, with defaults.
func stored(t *testing.T, w *World, od *v1alpha1.ObjectDeployment) string {
	t.Helper()
	dry := od.DeepCopy()
	NewWithT(t).Expect(w.Client.Create(t.Context(), dry, client.DryRunAll)).To(Succeed())
	return revision.TemplateHash(dry.Spec.Template, nil)
}

func TestPausedDeployment(t *testing.T) {
	each(t, func(t *testing.T, class string) {
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		// A probe that fails: that a paused deployment says so must not depend on success.
		od := ObjectDeployment(ns, "web", classed(class, Phase("a", inNamespace(ns, ConfigMap("cm", nil, "name", "x")))))
		od.Spec.Template.Spec.AvailabilityProbes = []v1alpha1.ObjectSetProbe{Probe("ConfigMap", ".metadata.name", ".metadata.annotations.name")}
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		w.Eventually(t, od, HasCondition(od, &od.Status.Conditions, "Available", "False", "ObjectSetUnready", ""))
		pause := func(paused bool) {
			patch := fmt.Sprintf(`{"spec":{"paused":%t}}`, paused)
			g.Expect(w.Client.Patch(t.Context(), od, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
		}
		pause(true)
		w.Eventually(t, od, HasCondition(od, &od.Status.Conditions, "Paused", "True", "Paused", "Latest revision is paused: Lifecycle state set to paused."))
		for _, os := range revisions(t, w, ns) {
			g.Expect(os.Annotations).To(HaveKeyWithValue(v1alpha1.PausedByParentAnnotation, "true"))
		}
		setTemplate(t, w, od, classed(class, Phase("a", inNamespace(ns, ConfigMap("cm", nil, "name", "cm")))))
		g.Consistently(func() int { return len(revisions(t, w, ns)) }, quiet).Should(Equal(1), "a paused deployment makes no revision")
		pause(false)
		w.Eventually(t, od, latest(od))
		w.Eventually(t, od, func() error {
			if meta.FindStatusCondition(od.Status.Conditions, "Paused") != nil {
				return errors.New("still paused")
			}
			return nil
		})
	})
}

func TestPausedSuccessor(t *testing.T) {
	each(t, func(t *testing.T, class string) {
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		phases := func(value string) []v1alpha1.ObjectSetTemplatePhase {
			fixed := inNamespace(ns, ConfigMap("fixed", map[string]any{"v": value}))
			fixed.Object.Object["immutable"] = true
			return []v1alpha1.ObjectSetTemplatePhase{classed(class, Phase("a", fixed)), classed(class, Phase("b", inNamespace(ns, ConfigMap("data", map[string]any{"v": value}))))}
		}
		od := ObjectDeployment(ns, "web", phases("1")...)
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		w.Eventually(t, od, latest(od))
		data := configMap(ns, "data")
		g.Expect(get(w, t, data)).To(Succeed())
		uid := data.UID
		setTemplate(t, w, od, phases("2")...) // which the API server refuses in the first phase
		var next *v1alpha1.ObjectSet
		g.Eventually(func() int {
			sets := revisions(t, w, ns)
			for _, os := range sets {
				if os.Spec.Revision == 2 {
					next = &os
				}
			}
			return len(sets)
		}, Timeout).Should(Equal(2))
		w.Eventually(t, next, func() error {
			if !meta.IsStatusConditionFalse(next.Status.Conditions, "Available") {
				return fmt.Errorf("conditions are %v", next.Status.Conditions)
			}
			return nil
		})
		g.Expect(w.Client.Patch(t.Context(), next, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"lifecycleState":"Paused"}}`)))).To(Succeed())
		w.Eventually(t, next, HasCondition(next, &next.Status.Conditions, "Paused", "True", "Paused", "Lifecycle state set to paused."))
		// It has taken nothing over, so what the one before has must not go.
		g.Consistently(func(g Gomega) {
			g.Expect(get(w, t, data)).To(Succeed())
			g.Expect(data.UID).To(Equal(uid))
			g.Expect(data.DeletionTimestamp.IsZero()).To(BeTrue())
			for _, os := range revisions(t, w, ns) {
				g.Expect(os.Spec.LifecycleState).NotTo(Equal(v1alpha1.LifecycleStateArchived))
			}
			g.Expect(get(w, t, next)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(next.Status.Conditions, "Available")).To(BeFalse(), "it has taken over nothing")
		}, quiet).Should(Succeed())
	})
}

func TestClusterDeployment(t *testing.T) {
	t.Run("When it is cluster-scoped it should do the same", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		od := (*v1alpha1.ClusterObjectDeployment)(ObjectDeployment("", ns, Phase("a", inNamespace(ns, ConfigMap("cm", map[string]any{"v": "1"})))))
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		is := func(revision int64) func() error {
			return func() error {
				if od.Status.Revision != revision {
					return fmt.Errorf("at revision %d", od.Status.Revision)
				}
				return HasCondition(od, &od.Status.Conditions, "Available", "True", "Available", "Latest Revision is Available.")()
			}
		}
		w.Eventually(t, od, is(1))
		od.Spec.Template.Spec.Phases[0].Objects[0].Object.Object["data"] = map[string]any{"v": "2"}
		g.Expect(w.Client.Update(t.Context(), od)).To(Succeed())
		w.Eventually(t, od, is(2))
		g.Expect(w.Client.Delete(t.Context(), od, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		w.Gone(t, od)
		g.Expect(get(w, t, configMap(ns, "cm"))).NotTo(Succeed())
	})
}
