package changes_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"hcp.internal/platform/internal/kube/changes"
)

func secret(change ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "1", Annotations: map[string]string{"ours.io/a": "1", "theirs.io/a": "1"}},
		Data: map[string][]byte{"k": []byte("v")}}
	for _, c := range change {
		c(s)
	}
	return s
}

func TestOf(t *testing.T) {
	ours := func(obj client.Object) any { return changes.MetaOf(obj, "ours.io/") }
	for name, tc := range map[string]struct {
		seen   func(client.Object) any
		change func(*corev1.Secret)
		want   bool
	}{
		"When only the bookkeeping changed it should be no reason": {seen: changes.Content, change: func(s *corev1.Secret) {
			s.ResourceVersion, s.ManagedFields = "2", []metav1.ManagedFieldsEntry{{Manager: "somebody", Time: ptr.To(metav1.NewTime(time.Unix(1, 0)))}}
		}},
		"When the content changed it should be a reason":                   {seen: changes.Content, change: func(s *corev1.Secret) { s.Data = map[string][]byte{"k": []byte("w")} }, want: true},
		"When an annotation of others changed it should be no reason":      {seen: ours, change: func(s *corev1.Secret) { s.Annotations["theirs.io/a"] = "2" }},
		"When an annotation of ours changed it should be a reason":         {seen: ours, change: func(s *corev1.Secret) { s.Annotations["ours.io/a"] = "2" }, want: true},
		"When an annotation of ours went it should be a reason":            {seen: ours, change: func(s *corev1.Secret) { delete(s.Annotations, "ours.io/a") }, want: true},
		"When the deletion began it should be a reason":                    {seen: ours, change: func(s *corev1.Secret) { s.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0))) }, want: true},
		"When the name has another object by now it should be a reason":    {seen: ours, change: func(s *corev1.Secret) { s.UID = "2" }, want: true},
		"When the same state came again it should be no reason for a pass": {seen: changes.Content, change: func(*corev1.Secret) {}},
	} {
		t.Run(name, func(t *testing.T) {
			before := secret()
			got := changes.Of(tc.seen).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: secret(tc.change)})
			NewWithT(t).Expect(got).To(Equal(tc.want))
			NewWithT(t).Expect(before.ResourceVersion).To(Equal("1"), "objects of the cache stay as they are")
		})
	}
}

func TestInto(t *testing.T) {
	g := NewWithT(t)
	full := changes.Into(func(obj client.Object) bool { s, ok := obj.(*corev1.Secret); return ok && s.Data != nil })
	with, without := secret(), secret(func(s *corev1.Secret) { s.Data = nil })
	g.Expect(full.Create(event.CreateEvent{Object: with})).To(BeTrue(), "When it is created so it should be a reason")
	g.Expect(full.Create(event.CreateEvent{Object: without})).To(BeFalse(), "When it isn't so yet it should be no reason")
	g.Expect(full.Update(event.UpdateEvent{ObjectOld: without, ObjectNew: with})).To(BeTrue(), "When it becomes so it should be a reason")
	g.Expect(full.Update(event.UpdateEvent{ObjectOld: with, ObjectNew: with})).To(BeFalse(), "When it stays so it should be no reason")
	g.Expect(full.Update(event.UpdateEvent{ObjectOld: with, ObjectNew: without})).To(BeFalse(), "When it is so no longer it should be no reason")
	g.Expect(full.Delete(event.DeleteEvent{Object: with})).To(BeFalse(), "When it goes it should be no reason")
}
