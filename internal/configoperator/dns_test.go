package configoperator

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func dnsPod(name, node string, age time.Duration, mutate ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{dnsLabel: dnsApp}, CreationTimestamp: metav1.NewTime(noon.Add(-age))},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "coredns", Image: "coredns"}}, TerminationGracePeriodSeconds: ptr.To[int64](0)},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, m := range mutate {
		m(&p)
	}
	return p
}

func dnsNode(name string, mutate ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, m := range mutate {
		m(n)
	}
	return n
}

func TestCrowded(t *testing.T) {
	gone := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
	unready := func(p *corev1.Pod) { p.Status.Conditions = nil }
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"When both share a node it should move the younger":       {[]corev1.Pod{dnsPod("old", "a", 2), dnsPod("new", "a", 1)}, "new"},
		"When the younger is listed first it should be found too": {[]corev1.Pod{dnsPod("new", "a", 1), dnsPod("old", "a", 2)}, "new"},
		"When each has a node it should move none":                {[]corev1.Pod{dnsPod("old", "a", 2), dnsPod("new", "b", 1)}, ""},
		"When one is not ready it should wait":                    {[]corev1.Pod{dnsPod("old", "a", 2, unready), dnsPod("new", "a", 1)}, ""},
		"When one is going it should wait":                        {[]corev1.Pod{dnsPod("old", "a", 2), dnsPod("new", "a", 1, gone)}, ""},
		"When neither has a node it should wait":                  {[]corev1.Pod{dnsPod("old", "", 2), dnsPod("new", "", 1)}, ""},
		"When a rollout has three it should wait":                 {[]corev1.Pod{dnsPod("a", "a", 3), dnsPod("b", "a", 2), dnsPod("c", "a", 1)}, ""},
		"When there is one it should stay":                        {[]corev1.Pod{dnsPod("old", "a", 2)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if pod := crowded(tc.pods); pod != nil {
				got = pod.Name
			}
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

func TestTakesPods(t *testing.T) {
	g := NewWithT(t)
	g.Expect(takesPods(dnsNode("n"))).To(BeTrue())
	for name, mutate := range map[string]func(*corev1.Node){
		"cordoned":   func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"tainted":    func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} },
		"not ready":  func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
		"just added": func(n *corev1.Node) { n.Status.Conditions = nil },
		"going":      func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: noon} },
	} {
		g.Expect(takesPods(dnsNode("n", mutate))).To(BeFalse(), "When a node is %s it should take no pod", name)
	}
}

// TestDNS plays nodes that come and go on a real API server, without a scheduler.
func TestDNS(t *testing.T) {
	w := newWorld(t)
	g := NewWithT(t)
	pass := func() time.Duration {
		t.Helper()
		result, err := w.reconciler(w.client, w.hosted).Reconcile(t.Context(), w.request())
		g.Expect(err).NotTo(HaveOccurred())
		return result.RequeueAfter
	}
	replicas := func() int32 {
		t.Helper()
		d := &appsv1.Deployment{}
		g.Expect(w.hosted.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, d)).To(Succeed())
		return *d.Spec.Replicas
	}
	create := func(o client.Object) {
		t.Helper()
		status := o.DeepCopyObject().(client.Object)
		g.Expect(w.hosted.Create(t.Context(), o)).To(Succeed())
		status.SetResourceVersion(o.GetResourceVersion())
		status.SetUID(o.GetUID())
		g.Expect(w.hosted.Status().Update(t.Context(), status)).To(Succeed())
		t.Cleanup(func() { _ = w.hosted.Delete(context.WithoutCancel(t.Context()), o) })
	}
	for n, want := range []int32{1, 1, 2, 2} {
		if n > 0 {
			create(dnsNode(fmt.Sprint("worker-", n), func(n *corev1.Node) { n.Spec.Unschedulable = true }))
		}
		pass()
		g.Expect(replicas()).To(Equal(want), "with %d nodes", n)
	}

	for _, name := range []string{"coredns-a", "coredns-b"} {
		pod := dnsPod(name, "worker-1", 0, func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{} })
		create(&pod)
	}
	left := func() int {
		t.Helper()
		pods := &corev1.PodList{}
		g.Expect(w.hosted.List(t.Context(), pods, client.InNamespace("kube-system"), client.MatchingLabels{dnsLabel: dnsApp})).To(Succeed())
		return len(pods.Items)
	}
	g.Expect(pass()).To(BeNumerically("<=", crowdedRecheck+crowdedRecheck/10), "it should look again when nodes take pods")
	g.Expect(left()).To(Equal(2), "no other node takes pods")

	node := &corev1.Node{}
	g.Expect(w.hosted.Get(t.Context(), client.ObjectKey{Name: "worker-2"}, node)).To(Succeed())
	node.Spec.Unschedulable, node.Spec.Taints = false, nil
	g.Expect(w.hosted.Update(t.Context(), node)).To(Succeed())
	allow := func(n int32) {
		t.Helper()
		budget := &policyv1.PodDisruptionBudget{}
		g.Expect(w.hosted.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, budget)).To(Succeed())
		budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DisruptionsAllowed: n, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2}
		g.Expect(w.hosted.Status().Update(t.Context(), budget)).To(Succeed())
	}
	allow(0)
	pass()
	g.Expect(left()).To(Equal(2), "the disruption budget allows nothing")
	allow(1)
	pass()
	g.Expect(left()).To(Equal(1), "one of the two goes")
	pods := &corev1.PodList{}
	g.Expect(w.hosted.List(t.Context(), pods, client.InNamespace("kube-system"), client.MatchingLabels{dnsLabel: dnsApp})).To(Succeed())
	for i := range pods.Items {
		if err := w.hosted.Delete(t.Context(), &pods.Items[i]); !apierrors.IsNotFound(err) {
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
}
