package rollup_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/rollup"
)

func TestSet(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	of := conditions.False("Available", "EtcdWaitingForQuorum", "1 of 3 members")
	t.Run("When something goes on it should be reconciling, in the words of the condition", func(t *testing.T) {
		g := NewWithT(t)
		var list []metav1.Condition
		rollup.Set(&list, now, 7, &of, nil)
		g.Expect(list).To(HaveLen(1))
		c := list[0]
		g.Expect([]any{c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration}).To(Equal([]any{rollup.Reconciling, metav1.ConditionTrue, of.Reason, of.Message, int64(7)}))
	})
	t.Run("When somebody has to look it should be stalled alone, and when all is well it should be neither", func(t *testing.T) {
		g := NewWithT(t)
		var list []metav1.Condition
		rollup.Set(&list, now, 7, &of, nil)
		rollup.Set(&list, now, 7, &of, &of)
		g.Expect(list).To(HaveLen(1))
		g.Expect(list[0].Type).To(Equal(rollup.Stalled))
		rollup.Set(&list, now, 8, nil, nil)
		g.Expect(list).To(BeEmpty())
	})
}
