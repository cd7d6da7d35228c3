package hotloop

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/kube/fieldpath"
)

// TestWritersOfStatus: looks are apart, so that between two of them somebody may have changed the spec, too.
func TestWritersOfStatus(t *testing.T) {
	entry := func(manager, subresource string, second int) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Date(2026, 11, 23, 12, 0, second, 0, time.UTC))
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:paused":{}}}`)}
	}
	play := func(reporter string) *detail {
		d := &detail{fields: map[string]*field{}}
		for i := range 6 {
			now := fieldpath.Flatten(map[string]any{"spec": map[string]any{"paused": i%2 == 0}, "status": map[string]any{"phase": []string{"Paused", "Active"}[i%2]}})
			d.compare(now, []metav1.ManagedFieldsEntry{entry("kubectl", "", i), entry("operator", reporter, i)}, time.Now())
		}
		return d
	}
	t.Run("When somebody changes the spec and the operator reports it only the operator should be a writer of status", func(t *testing.T) {
		g := NewWithT(t)
		d := play("status")
		g.Expect(d.fields["status.phase"].writers).To(ConsistOf("operator"))
		g.Expect(d.fields["spec.paused"].writers).To(ConsistOf("kubectl", "operator"))
	})
	t.Run("When status is not written apart anybody may have written it", func(t *testing.T) {
		NewWithT(t).Expect(play("").fields["status.phase"].writers).To(ConsistOf("kubectl", "operator"))
	})
}
