package fleet

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/placement"
	"hcp.internal/platform/internal/sizing"
	"hcp.internal/platform/internal/testenv"
)

// Sizes and nodes for single clusters are switched off: clusters keep what they have, and what tells of it says so.
func TestSwitchedOff(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	s.configure(withEffects, func(c *schedulingv1alpha1.ClusterSizingConfiguration) {
		c.Spec.Sizes[0].Management = &schedulingv1alpha1.Management{Placeholders: 1}
	})
	t.Cleanup(func() {
		_ = s.c.DeleteAllOf(context.Background(), &appsv1.Deployment{}, client.InNamespace(placement.Namespace))
	})
	placer := s.placer(s.c)
	placer.Image = image
	s.nodes("off", "small")
	one, two, never := s.dedicated("one", 3), s.dedicated("two", 3), s.cluster("never", 3)
	for _, hc := range []*hyperv1.HostedCluster{one, two} {
		s.pass(s.c, s.sizer(s.c), client.ObjectKeyFromObject(hc))
		s.pass(s.c, placer, client.ObjectKeyFromObject(hc))
	}
	s.pass(s.c, &Warmer{Client: s.c, Live: s.c, Image: image, Scheduler: placer}, client.ObjectKey{})
	g.Expect(s.placeholders()).To(HaveLen(2))
	s.scale("one", 50)
	s.pass(s.c, s.sizer(s.c), client.ObjectKeyFromObject(one)) // it waits for another size
	s.size(one)
	before := one.DeepCopy()

	off := func(c client.Client, sizes bool) error {
		r := &Retirer{Client: c, Live: c, Clock: s.now, Sizes: sizes}
		for _, key := range []client.ObjectKey{{Name: "placeholders"}, client.ObjectKeyFromObject(one), client.ObjectKeyFromObject(never)} {
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				return err
			}
		}
		return nil
	}
	s.now.SetTime(s.now.Now().Add(time.Hour))
	s.pass(s.c, s.scheduler(s.c), client.ObjectKeyFromObject(one)) // by which the pods stay on nodes of its size
	g.Expect(off(s.c, false)).To(Succeed())
	g.Expect(s.placeholders()).To(BeEmpty(), "nobody takes nodes that they would have added")
	s.size(one)
	g.Expect(*conditions.Get(one.Status.Conditions, hyperv1.RequestServingNodesReady)).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", NodesSwitchedOff)))
	g.Expect(conditions.IsTrue(one.Status.Conditions, hyperv1.ClusterSizeTransitionPending)).To(BeTrue(), "sizes go on")

	g.Expect(off(s.c, true)).To(Succeed())
	s.size(one)
	g.Expect(conditions.Get(one.Status.Conditions, hyperv1.ClusterSizeComputed)).To(Equal(conditions.Get(before.Status.Conditions, hyperv1.ClusterSizeComputed)))
	g.Expect(*conditions.Get(one.Status.Conditions, hyperv1.ClusterSizeTransitionPending)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", sizing.SwitchedOff)))
	g.Expect(one.Annotations).To(Equal(before.Annotations))
	g.Expect(one.Labels).To(Equal(before.Labels))
	g.Expect(s.owned(one)).To(ConsistOf("off-small-z1", "off-small-z2"), "a running cluster keeps its nodes")
	s.size(never)
	g.Expect(never.Status.Conditions).To(BeEmpty())
	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error { return off(c, true) })

	s.pass(s.c, s.sizer(s.c), client.ObjectKeyFromObject(one))
	s.pass(s.c, placer, client.ObjectKeyFromObject(one))
	s.size(one)
	g.Expect(conditions.Get(one.Status.Conditions, hyperv1.RequestServingNodesReady).Reason).To(Equal(placement.Claimed), "switched on again")
	g.Expect(conditions.Get(one.Status.Conditions, hyperv1.ClusterSizeTransitionPending).Reason).To(Equal(sizing.DelayNotElapsed))
}
