package objectsetphase

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/control/objectset"
	"hcp.internal/platform/internal/packages/engine/phase"
)

func TestKeptConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		paused bool
		result phase.Result
	}{
		"When a phase is paused it should keep its mapped conditions for those who look at the present generation": {paused: true},
		"When a phase is refused it should keep its mapped conditions for those who look at the present generation": {
			result: phase.Result{Violations: []phase.Violation{{Position: "spec", Errors: []string{"no"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			g, now := NewWithT(t), time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
			osp := &v1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: v1alpha1.ObjectSetPhaseSpec{Paused: tc.paused}}
			c := conditions.True("example.com/Ready", "Fine", "")
			c.ObservedGeneration = 1
			conditions.Set(&osp.Status.Conditions, now, c)
			report(osp, tc.result, now.Add(time.Hour))
			g.Expect(objectset.Mapped(osp.Status.Conditions, osp.Generation, 7)).To(HaveExactElements(HaveField("Type", "example.com/Ready")))
			settled := *osp.Status.DeepCopy()
			report(osp, tc.result, now.Add(2*time.Hour))
			g.Expect(osp.Status).To(Equal(settled), "a second pass should change nothing")
		})
	}
}
