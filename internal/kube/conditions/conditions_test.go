package conditions_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/kube/conditions"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func ready(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message}
}

func TestSet(t *testing.T) {
	for name, tc := range map[string]struct {
		second metav1.Condition
		moved  bool
	}{
		"When only reason and message change it should keep the transition time": {second: ready(metav1.ConditionFalse, "Other", "two")},
		"When the status changes it should move the transition time":             {second: ready(metav1.ConditionTrue, "AsExpected", ""), moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var list []metav1.Condition
			conditions.Set(&list, noon, ready(metav1.ConditionFalse, "Waiting", "one"))
			conditions.Set(&list, noon.Add(time.Hour), tc.second)
			got := conditions.Get(list, "Ready")
			g.Expect(list).To(HaveLen(1))
			g.Expect(got.Reason).To(Equal(tc.second.Reason))
			g.Expect(got.LastTransitionTime.Time.Equal(noon)).To(Equal(!tc.moved))
		})
	}
	t.Run("When a message is longer than the API allows it should be cut", func(t *testing.T) {
		g := NewWithT(t)
		var list []metav1.Condition
		conditions.Set(&list, noon, ready(metav1.ConditionTrue, "AsExpected", strings.Repeat("x", 40000)))
		g.Expect(len(list[0].Message)).To(Equal(32768))
	})
}

func TestCurrent(t *testing.T) {
	list := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: 2}}
	for name, tc := range map[string]struct {
		of         string
		generation int64
		want       *metav1.Condition
	}{
		"When a condition is about this generation it should return it":     {of: "Ready", generation: 2, want: &list[0]},
		"When a condition is about an earlier one it should return nothing": {of: "Ready", generation: 3},
		"When there is no condition of the type it should return nothing":   {of: "Available", generation: 2},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(conditions.Current(list, tc.of, tc.generation)).To(BeIdenticalTo(tc.want))
		})
	}
}
