package objectset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/phase"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// mappedSet is an ObjectSet at generation 2 that reported a mapped condition at generation 1.
func mappedSet() *v1alpha1.ObjectSet {
	os := &v1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	c := conditions.True("example.com/Ready", "Fine", "")
	c.ObservedGeneration = 1
	conditions.Set(&os.Status.Conditions, noon, c)
	return os
}

func TestKeptConditions(t *testing.T) {
	for name, out := range map[string]observed{
		"When a revision is paused it should keep its mapped conditions for those who look at the present generation": {keepMapped: true},
		"When a revision is refused it should keep its mapped conditions for those who look at the present generation": {
			keepMapped: true, violations: []phase.Violation{{Position: "spec", Errors: []string{"no"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			g, os := NewWithT(t), mappedSet()
			out.report(os, noon.Add(time.Hour))
			g.Expect(Mapped(os.Status.Conditions, os.Generation, 7)).To(HaveExactElements(
				And(HaveField("Type", "example.com/Ready"), HaveField("ObservedGeneration", int64(7)), HaveField("LastTransitionTime.Time", BeTemporally("==", noon)))))
			settled := *os.Status.DeepCopy()
			out.report(os, noon.Add(2*time.Hour))
			g.Expect(os.Status).To(Equal(settled), "a second pass should change nothing")
		})
	}
	t.Run("When a revision is not paused it should drop mapped conditions that no object has", func(t *testing.T) {
		g, os := NewWithT(t), mappedSet()
		observed{}.report(os, noon)
		g.Expect(conditions.Get(os.Status.Conditions, "example.com/Ready")).To(BeNil())
	})
}

func TestRemotePaused(t *testing.T) {
	const partially = v1alpha1.ReasonPartiallyPaused
	for name, tc := range map[string]struct {
		// reported is the generation of the phase's condition Paused, 0 for none; the phase is at generation 3.
		reported int64
		state    v1alpha1.LifecycleState
		want     string
	}{
		"When a phase says that it is paused it should be paused":                       {3, v1alpha1.LifecycleStatePaused, v1alpha1.ReasonPaused},
		"When a phase said so before it was resumed and paused again it should wait":    {1, v1alpha1.LifecycleStatePaused, partially},
		"When a phase has not said so yet it should wait":                               {0, v1alpha1.LifecycleStatePaused, partially},
		"When a phase is resumed and has not said so yet it should wait":                {2, v1alpha1.LifecycleStateActive, partially},
		"When a phase that is resumed no longer says that it is paused it should be so": {0, v1alpha1.LifecycleStateActive, ""},
	} {
		t.Run(name, func(t *testing.T) {
			osp := &v1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Name: "set-a", UID: "1", Generation: 3}}
			if tc.reported != 0 {
				c := conditions.True(v1alpha1.ConditionPaused, v1alpha1.ReasonPaused, "")
				c.ObservedGeneration = tc.reported
				conditions.Set(&osp.Status.Conditions, noon, c)
			}
			out := observed{}
			out.sawPhase(&v1alpha1.ObjectSet{}, osp)
			reason := ""
			if c := out.paused(tc.state); c != nil {
				reason = c.Reason
			}
			NewWithT(t).Expect(reason).To(Equal(tc.want))
		})
	}
}

func TestUnavailable(t *testing.T) {
	for name, tc := range map[string]struct {
		status          metav1.ConditionStatus
		reason, message string
		want            string
	}{
		"When a phase is available it should be nothing":             {metav1.ConditionTrue, "Available", "fine", ""},
		"When a phase says why it is not it should be that":          {metav1.ConditionFalse, "ProbeFailure", "a fails", "a fails"},
		"When a phase has no message it should be the reason":        {metav1.ConditionFalse, "ProbeFailure", "", "ProbeFailure"},
		"When a phase says nothing at all it should be some message": {metav1.ConditionFalse, "", "", "it is not available, and does not say why"},
	} {
		t.Run(name, func(t *testing.T) {
			osp := &v1alpha1.ObjectSetPhase{Status: v1alpha1.ObjectSetPhaseStatus{Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionAvailable, Status: tc.status, Reason: tc.reason, Message: tc.message}}}}
			NewWithT(t).Expect(unavailable(osp)).To(Equal(tc.want))
		})
	}
}

func TestUnordered(t *testing.T) {
	t.Run("When a revision is deleted in the foreground it should say that phases don't wait for each other, else nothing", func(t *testing.T) {
		g, os := NewWithT(t), &v1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Finalizers: Finalizers}}
		g.Expect(unordered(os)).To(BeEmpty())
		os.Finalizers = append(os.Finalizers[:len(os.Finalizers):len(os.Finalizers)], metav1.FinalizerDeleteDependents)
		g.Expect(unordered(os)).To(ContainSubstring("--cascade=background"))
	})
}
