package inplace

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/testenv"
)

// stuck puts a pod on the first node that a budget keeps there.
func (p *pool) stuck(t testing.TB) *corev1.Pod {
	t.Helper()
	g := NewWithT(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: "web", Labels: map[string]string{"app": "web"}}}
	pod.Spec = corev1.PodSpec{NodeName: p.nodes[0], AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	g.Expect(p.client.Create(t.Context(), pod)).To(Succeed())
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	g.Expect(p.client.Status().Update(t.Context(), pod)).To(Succeed())
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: "web"}}
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(1))
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	g.Expect(p.client.Create(t.Context(), budget)).To(Succeed())
	return pod
}

func TestDrainTimeout(t *testing.T) {
	// timed limits drains of the pool to five minutes, and drains at a time of the test's.
	timed := func(t testing.TB, p *pool, timeout *int32) (clock *clocktesting.FakePassiveClock, pass func(client.WithWatch) error) {
		p.set.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = timeout
		NewWithT(t).Expect(p.client.Update(t.Context(), p.set)).To(Succeed())
		clock = clocktesting.NewFakePassiveClock(noon)
		return clock, func(c client.WithWatch) error {
			d := p.drainer(c)
			d.Clock = clock
			_, err := d.Reconcile(t.Context(), p.request())
			return err
		}
	}
	overs := func(t testing.TB, p *pool) []string {
		events := &corev1.EventList{}
		NewWithT(t).Expect(p.client.List(t.Context(), events, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
		var out []string
		for _, e := range events.Items {
			if e.Reason == eventDrainTimeout && e.InvolvedObject.Name == p.nodes[0] {
				out = append(out, e.Message)
			}
		}
		return out
	}
	t.Run("When a drain has lasted for spec.nodeDrainTimeout it should go on with the pods that are left, and say so", func(t *testing.T) {
		g := NewWithT(t)
		p := newPool(t)
		clock, pass := timed(t, p, ptr.To[int32](300))
		web := p.stuck(t)
		p.says(t, 0, map[string]string{desiredDrain: "drain-v2"})
		g.Expect(pass(p.client)).To(Succeed())
		g.Expect(p.node(t, 0).Annotations).To(And(HaveKeyWithValue(drainStarted, "2026-11-21T12:00:00Z drain-v2"), HaveKey(drainBlocked)))
		clock.SetTime(noon.Add(5*time.Minute - time.Second))
		before := p.node(t, 0).ResourceVersion
		g.Expect(pass(p.client)).To(Succeed())
		g.Expect(p.node(t, 0).ResourceVersion).To(Equal(before), "When nothing has changed it should only ask again")
		g.Expect(p.node(t, 0).Annotations).NotTo(HaveKey(lastAppliedDrain))

		clock.SetTime(noon.Add(5 * time.Minute))
		g.Expect(pass(p.client)).To(Succeed())
		g.Expect(p.node(t, 0).Annotations).To(And(HaveKeyWithValue(lastAppliedDrain, "drain-v2"), Not(HaveKey(drainStarted)), Not(HaveKey(drainBlocked))))
		g.Expect(p.client.Get(t.Context(), client.ObjectKeyFromObject(web), web)).To(Succeed(), "the budget is kept")
		g.Expect(overs(t, p)).To(ConsistOf("the drain has lasted for 5m0s (spec.nodeDrainTimeout of the NodePool): the node is changed with 1 of its pods still there"))
		testenv.ExpectQuiet(t, p.client, pass)

		// The next change has all its time.
		p.says(t, 0, map[string]string{desiredDrain: "uncordon-v2"})
		g.Expect(pass(p.client)).To(Succeed())
		clock.SetTime(noon.Add(time.Hour))
		p.says(t, 0, map[string]string{desiredDrain: "drain-v3"})
		g.Expect(pass(p.client)).To(Succeed())
		g.Expect(p.node(t, 0).Annotations).To(And(HaveKeyWithValue(drainStarted, "2026-11-21T13:00:00Z drain-v3"), HaveKeyWithValue(lastAppliedDrain, "uncordon-v2")))
	})
	t.Run("When the version changes during a drain it should not inherit the time", func(t *testing.T) {
		g := NewWithT(t)
		p := newPool(t)
		clock, pass := timed(t, p, ptr.To[int32](300))
		p.stuck(t)
		p.says(t, 0, map[string]string{desiredDrain: "drain-v1.5"})
		g.Expect(pass(p.client)).To(Succeed())
		clock.SetTime(noon.Add(time.Hour))
		p.says(t, 0, map[string]string{desiredDrain: "drain-v2"})
		g.Expect(pass(p.client)).To(Succeed())
		g.Expect(p.node(t, 0).Annotations).To(And(HaveKeyWithValue(drainStarted, "2026-11-21T13:00:00Z drain-v2"), Not(HaveKey(lastAppliedDrain))))
	})
	t.Run("When there is no timeout it should wait for ever, and heed one that is set later", func(t *testing.T) {
		g := NewWithT(t)
		p := newPool(t)
		clock, pass := timed(t, p, nil)
		p.stuck(t)
		p.says(t, 0, map[string]string{desiredDrain: "drain-v2"})
		g.Expect(pass(p.client)).To(Succeed())
		clock.SetTime(noon.Add(1000 * time.Hour))
		g.Expect(pass(p.client)).To(Succeed())
		g.Expect(p.node(t, 0).Annotations).NotTo(HaveKey(lastAppliedDrain))
		p.set.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](300)
		g.Expect(p.client.Update(t.Context(), p.set)).To(Succeed())
		g.Expect(pass(p.client)).To(Succeed())
		g.Expect(p.node(t, 0).Annotations).To(HaveKeyWithValue(lastAppliedDrain, "drain-v2"))
	})
}
