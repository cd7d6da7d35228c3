package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/nodepool/machines"
)

func TestHibernation(t *testing.T) {
	asleep := func(o *observed) {
		metav1.SetMetaDataAnnotation(&o.hc.ObjectMeta, hyperv1.HibernateAnnotation, "true")
	}
	replicas := func(p plan) *int32 { return p.workload.(*clusterv1.MachineDeployment).Spec.Replicas }
	t.Run("When the hosted cluster is to sleep the pool should give up its machines, and get them back when it is awake", func(t *testing.T) {
		g := NewWithT(t)
		obs := example(t, func(o *observed) { o.pool.Spec.Replicas = ptr.To[int32](3) })
		obs = settled(obs, planFor(obs, noon, "token"))
		asleep(obs)
		p := planFor(obs, noon, "unused")
		g.Expect(replicas(p)).To(HaveValue(BeZero()))
		obs = settled(obs, p)
		g.Expect(*obs.pool.Spec.Replicas).To(BeEquivalentTo(3), "what the user wants is not touched")
		delete(obs.hc.Annotations, hyperv1.HibernateAnnotation)
		obs.hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.HostedClusterHibernated, Status: "False", Reason: hyperv1.WakingReason}}
		p = planFor(obs, noon, "unused")
		g.Expect(p.workload == nil || *replicas(p) == 0).To(BeTrue(), "the control plane does not serve yet")
		obs.hc.Status.Conditions = nil
		g.Expect(replicas(planFor(obs, noon, "unused"))).To(HaveValue(BeEquivalentTo(3)))
	})
	t.Run("When the pool has an autoscaler it should leave nothing to it while the hosted cluster sleeps", func(t *testing.T) {
		g := NewWithT(t)
		obs := example(t, func(o *observed) {
			o.pool.Spec.Replicas, o.pool.Spec.AutoScaling = nil, &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](1), Max: 10}
		})
		obs = settled(obs, planFor(obs, noon, "token"))
		asleep(obs)
		p := planFor(obs, noon, "unused")
		g.Expect(replicas(p)).To(HaveValue(BeZero()))
		g.Expect(p.workload.GetAnnotations()).To(And(HaveKeyWithValue(machines.MinSizeAnnotation, "0"), HaveKeyWithValue(machines.MaxSizeAnnotation, "0")))
		obs = settled(obs, p)
		delete(obs.hc.Annotations, hyperv1.HibernateAnnotation)
		p = planFor(obs, noon, "unused")
		g.Expect(p.workload.GetAnnotations()).To(And(HaveKeyWithValue(machines.MinSizeAnnotation, "1"), HaveKeyWithValue(machines.MaxSizeAnnotation, "10")))
		g.Expect(replicas(p)).To(HaveValue(BeEquivalentTo(1)))
	})
	t.Run("When the pool is held its machines should stay, and it should say why", func(t *testing.T) {
		g := NewWithT(t)
		two := func(o *observed) { o.machines = make([]clusterv1.Machine, 2) }
		obs := example(t, asleep, two, func(o *observed) { o.pool.Spec.PausedUntil = ptr.To("true") })
		g.Expect(of(planFor(obs, noon, "token"), hyperv1.HostedClusterHibernated)).To(Equal("False/WorkersStopping: 2 machines stay while spec.pausedUntil pauses the pool"))
		obs = example(t, asleep, two, func(o *observed) { o.pool.Spec.NodeLabels = map[string]string{"no label": ""} })
		g.Expect(of(planFor(obs, noon, "token"), hyperv1.HostedClusterHibernated)).To(Equal("False/WorkersStopping: 2 machines stay until the pool is valid: see its other conditions"))
	})
	t.Run("When machines are still there it should say so, and when they are gone that they are", func(t *testing.T) {
		g := NewWithT(t)
		obs := example(t, asleep, func(o *observed) { o.machines = make([]clusterv1.Machine, 2) })
		g.Expect(of(planFor(obs, noon, "token"), hyperv1.HostedClusterHibernated)).To(Equal("False/WorkersStopping: 2 machines are being drained and removed"))
		obs.machines = nil
		g.Expect(of(planFor(obs, noon, "token"), hyperv1.HostedClusterHibernated)).To(HavePrefix("True/Asleep"))
		delete(obs.hc.Annotations, hyperv1.HibernateAnnotation)
		p := planFor(obs, noon, "token")
		g.Expect(of(p, hyperv1.HostedClusterHibernated)).To(BeEmpty())
		g.Expect(p.removed).To(ContainElement(hyperv1.HostedClusterHibernated))
	})
}
