package hostedclusterpackage

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

func TestLeftovers(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, Time: &now, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const ours = string(FieldOwner)
	wanted := template{Labels: map[string]string{"team": "blue"}, Annotations: map[string]string{"why": "asked for"}}
	for name, tc := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		want  bool
	}{
		"When we own what the template has nothing should be left over": {entry(ours, `{"f:metadata":{"f:labels":{".":{},"f:team":{}},"f:annotations":{"f:why":{}}},"f:spec":{"f:image":{}}}`), false},
		"When we own another label it should be left over":              {entry(ours, `{"f:metadata":{"f:labels":{"f:team":{},"f:old":{}}}}`), true},
		"When we own another annotation it should be left over":         {entry(ours, `{"f:metadata":{"f:annotations":{"f:old/one":{}}}}`), true},
		"When a rollout has set an annotation it should not count": {
			entry(ours, `{"f:metadata":{"f:annotations":{"f:`+packagesv1.RolloutReturnedAnnotation+`":{},"f:`+packagesv1.RolloutEnvironmentAnnotation+`":{}}}}`), false},
		"When somebody else owns a label it should not count": {entry("kubectl", `{"f:metadata":{"f:labels":{"f:old":{}}}}`), false},
		"When the API server says nothing it should not count": {
			metav1.ManagedFieldsEntry{Manager: ours, Operation: metav1.ManagedFieldsOperationApply, Time: &now}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, p := NewWithT(t), &packagesv1.Package{}
			p.ManagedFields = []metav1.ManagedFieldsEntry{tc.entry}
			g.Expect(hasLeftovers(p, wanted)).To(Equal(tc.want))
			p.ManagedFields = Remembered(p)
			g.Expect(hasLeftovers(p, wanted)).To(Equal(tc.want), "from a cache")
			if tc.entry.Manager == ours {
				g.Expect(appliedAt(p)).To(Equal(now.Time))
			}
		})
	}
}
