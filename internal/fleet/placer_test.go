package fleet

import (
	"context"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/placement"
	"hcp.internal/platform/internal/testenv"
)

// nodes makes a node of each size in two zones for a pair, and takes them away after the test.
func (s *scene) nodes(pair string, sizes ...string) {
	g := NewWithT(s.T)
	for _, size := range sizes {
		for _, zone := range []string{"z1", "z2"} {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: placement.ObjectName(pair) + "-" + size + "-" + zone, Labels: map[string]string{
				hyperv1.RequestServingComponentLabel: "true", hyperv1.PairedNodesLabel: pair, hyperv1.ClusterSizeLabel: size, corev1.LabelTopologyZone: zone}}}
			g.Expect(s.c.Create(s.Context(), n)).To(Succeed())
			s.Cleanup(func() { _ = s.c.Delete(context.Background(), n) })
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			g.Expect(s.c.Status().Update(s.Context(), n)).To(Succeed())
		}
	}
}

// owned are the nodes of a cluster, each with its taint.
func (s *scene) owned(hc *hyperv1.HostedCluster) (list []string) {
	g := NewWithT(s.T)
	all := &corev1.NodeList{}
	g.Expect(s.c.List(s.Context(), all)).To(Succeed())
	for _, n := range all.Items {
		mine := n.Labels[placement.ClusterLabel] == names.NamespaceOf(hc)
		g.Expect(slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == placement.ClusterLabel && t.Value == names.NamespaceOf(hc) })).To(Equal(mine), n.Name)
		if mine {
			list = append(list, n.Name)
		}
	}
	return list
}

func (s *scene) dedicated(name string, nodes int32) *hyperv1.HostedCluster {
	hc := s.cluster(name, nodes)
	hc.Annotations = map[string]string{hyperv1.TopologyAnnotation: hyperv1.DedicatedRequestServingComponentsTopology}
	NewWithT(s.T).Expect(s.c.Update(s.Context(), hc)).To(Succeed())
	s.Cleanup(func() { // what it has is given back
		_ = s.c.Delete(context.Background(), hc)
		_, _ = s.placer(s.c).Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hc)})
	})
	return hc
}

func (s *scene) placer(c client.Client) *Scheduler {
	return &Scheduler{Client: c, Clock: s.now, Live: c}
}

func TestPlacement(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	s.configure(withEffects)
	s.nodes("p1", "small", "medium")
	one, two := s.dedicated("one", 3), s.dedicated("two", 3)
	pass := func(hc *hyperv1.HostedCluster) ctrl.Result {
		s.pass(s.c, s.sizer(s.c), client.ObjectKeyFromObject(hc))
		result := s.pass(s.c, s.placer(s.c), client.ObjectKeyFromObject(hc))
		s.size(hc)
		return result
	}
	ready := func(hc *hyperv1.HostedCluster) *metav1.Condition {
		return conditions.Get(hc.Status.Conditions, hyperv1.RequestServingNodesReady)
	}
	pass(one)
	g.Expect(s.owned(one)).To(ConsistOf("p1-small-z1", "p1-small-z2"))
	g.Expect(one.Annotations).To(HaveKeyWithValue(hyperv1.RequestServingNodeAdditionalSelectorAnnotation, hyperv1.ClusterSizeLabel+"=small"))
	g.Expect(ready(one).Reason).To(Equal(placement.Claimed))
	pass(two)
	g.Expect(s.owned(two)).To(BeEmpty())
	g.Expect(ready(two).Reason).To(Equal(placement.WaitingForNodes))
	g.Expect(two.Annotations).NotTo(HaveKey(hyperv1.HostedClusterScheduledAnnotation), "what follows from a size waits for nodes")
	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error {
		for _, hc := range []*hyperv1.HostedCluster{one, two} {
			if _, err := s.placer(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hc)}); err != nil {
				return err
			}
		}
		return nil
	})

	// It grows, while a pod of it is still on one of the nodes.
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceOf(one)}}
	g.Expect(s.c.Create(t.Context(), ns)).To(Succeed())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "kube-apiserver"}, Spec: corev1.PodSpec{NodeName: "p1-small-z1", Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	g.Expect(s.c.Create(t.Context(), pod)).To(Succeed())
	one.Annotations[hyperv1.ClusterSizeOverrideAnnotation] = "medium"
	g.Expect(s.c.Update(t.Context(), one)).To(Succeed())
	g.Expect(pass(one).RequeueAfter).To(Equal(emptying))
	g.Expect(s.owned(one)).To(ConsistOf("p1-medium-z1", "p1-medium-z2", "p1-small-z1"), "the node with a pod stays its own")
	g.Expect(ready(one).Reason).To(Equal(placement.Resizing))
	g.Expect(one.Annotations).To(HaveKeyWithValue(hyperv1.RequestServingNodeAdditionalSelectorAnnotation, hyperv1.ClusterSizeLabel+"=medium"))
	g.Expect(one.Annotations).To(HaveKeyWithValue(hyperv1.KubeAPIServerGOMemoryLimitAnnotation, "4GiB"))
	g.Expect(s.c.Delete(t.Context(), pod, client.GracePeriodSeconds(0))).To(Succeed())
	g.Expect(pass(one).RequeueAfter).To(BeZero())
	g.Expect(s.owned(one)).To(ConsistOf("p1-medium-z1", "p1-medium-z2"))
	pass(two)
	g.Expect(s.owned(two)).To(BeEmpty(), "the pair is the other's, whatever is free in it")

	// It goes, and the other one gets the pair.
	one.Finalizers = nil
	g.Expect(s.c.Delete(t.Context(), one)).To(Succeed())
	s.pass(s.c, s.placer(s.c), client.ObjectKeyFromObject(one))
	g.Expect(s.owned(one)).To(BeEmpty())
	pass(two)
	g.Expect(s.owned(two)).To(ConsistOf("p1-small-z1", "p1-small-z2"))

	delete(two.Annotations, hyperv1.TopologyAnnotation)
	g.Expect(s.c.Update(t.Context(), two)).To(Succeed())
	pass(two)
	g.Expect(s.owned(two)).To(BeEmpty(), "it no longer asks for nodes of its own")
	g.Expect(ready(two)).To(BeNil())
	g.Expect(two.Annotations).NotTo(HaveKey(hyperv1.RequestServingNodeAdditionalSelectorAnnotation))
}

func TestPlacementCrash(t *testing.T) {
	s := newScene(t)
	s.configure(withEffects)
	n := 0
	testenv.CrashAtEveryWrite(t, 1, func(t testing.TB) testenv.CrashCase {
		n++
		pair := fmt.Sprintf("crash%d", n)
		s.nodes(pair, "medium")
		hc := s.dedicated(pair, 40)
		key := client.ObjectKeyFromObject(hc)
		s.pass(s.c, s.sizer(s.c), key)
		return testenv.CrashCase{
			Client: s.c,
			Run: func(c client.WithWatch) error {
				for range 3 {
					if _, err := s.placer(c).Reconcile(s.Context(), ctrl.Request{NamespacedName: key}); err != nil {
						return err
					}
				}
				return nil
			},
			Check: func(t testing.TB) {
				g := NewWithT(t)
				g.Expect(s.owned(hc)).To(HaveLen(2))
				s.size(hc)
				g.Expect(conditions.IsTrue(hc.Status.Conditions, hyperv1.RequestServingNodesReady)).To(BeTrue())
				g.Expect(hc.Annotations).To(HaveKeyWithValue(hyperv1.KubeAPIServerGOMemoryLimitAnnotation, "4GiB"))
			},
		}
	})
}
