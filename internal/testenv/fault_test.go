package testenv

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// threeWrites makes two ConfigMaps in a namespace and then tells how it went in the status of a Pod; if it gives up at the first error, it tells nothing.
func threeWrites(ctx context.Context, c client.Client, namespace string, givesUp bool) error {
	told := "all is well"
	for _, name := range []string{"a", "b"} {
		if err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); err != nil {
			if givesUp {
				return err
			}
			told = "making " + name
		}
	}
	pod := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "p"}, pod); err != nil {
		return err
	}
	pod.Status.Message = told
	return c.Status().Update(ctx, pod)
}

func TestLanded(t *testing.T) {
	g := NewWithT(t)
	worlds := 0
	after := func(fault Fault, at int, givesUp bool) string {
		worlds++
		ns := fmt.Sprintf("test-%05d", worlds)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "p"}}
		f := NewFaultClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pod).WithStatusSubresource(pod).Build(), fault, at)
		_ = threeWrites(t.Context(), f, ns, givesUp)
		return f.Landed()
	}
	g.Expect(after(DropAnswer, 1, true)).To(And(Not(BeEmpty()), Equal(after(FailWrite, 2, true)), Equal(after(Crash, 1, true))),
		"When it gives up, losing an answer should leave what a refusal of the next write leaves")
	g.Expect(after(DropAnswer, 1, true)).NotTo(Equal(after(DropAnswer, 2, true)), "When more has landed it should differ")
	g.Expect(after(DropAnswer, 1, false)).NotTo(Equal(after(DropAnswer, 2, false)), "When the same writes tell of other faults they should differ")
	g.Expect(after(DropAnswer, 1, false)).To(Equal(after(DropAnswer, 1, false)), "When worlds differ by their namespaces and times only it should be the same")
}
