package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/platform/machine"
)

func TestSpotHealthCheckHasOneWriter(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	named := func(name string) *hyperv1.NodePool {
		pool := examplePool(w.ns, func(np *hyperv1.NodePool) { np.Name = name })
		NewWithT(t).Expect(w.client.Create(ctx, pool)).To(Succeed())
		return pool
	}
	hc := &hyperv1.HostedCluster{}
	NewWithT(t).Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: "demo"}, hc)).To(Succeed())
	// round is what a pass does for the health checks of a pool whose machines are interruptible, or not.
	round := func(t *testing.T, pool *hyperv1.NodePool, interruptible bool) int {
		t.Helper()
		g := NewWithT(t)
		obs := &observed{pool: pool, hc: hc, namespace: w.hcpNS, template: &machine.Template{Interruptible: interruptible}}
		g.Expect(w.reconciler(w.client).readSpotChecks(ctx, obs)).To(Succeed())
		p := &pass{obs: obs}
		p.spotHealthCheck()
		writer := apply.New(w.client, "test")
		g.Expect(writer.All(ctx, p.after...)).To(Succeed())
		for _, gone := range p.delete {
			g.Expect(writer.Delete(ctx, gone)).To(Succeed())
		}
		return len(p.after) + len(p.delete)
	}
	owner := func(name string) string {
		mhc := &clusterv1.MachineHealthCheck{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.hcpNS, Name: name}, mhc); apierrors.IsNotFound(err) {
			return ""
		} else if err != nil {
			return err.Error()
		}
		return mhc.Annotations[hyperv1.NodePoolAnnotation]
	}
	pool, other := named("workers"), machines.SpotHealthCheckNames("workers")[1]

	t.Run("When no pool has the published name it should be used", func(t *testing.T) {
		g := NewWithT(t)
		round(t, pool, true)
		g.Expect(owner("workers-spot")).To(Equal(w.ns + "/workers"))
		g.Expect(owner(other)).To(BeEmpty())
	})
	namesake := named("workers-spot")
	t.Run("When a pool takes the name for its own health check the first should use another, and nobody writes the other's", func(t *testing.T) {
		g := NewWithT(t)
		own := machines.Pool{NodePool: namesake, Namespace: w.hcpNS, InfraID: hc.Spec.InfraID, ClusterName: hc.Name}
		settings, err := machines.HealthCheckSettingsFor(false, nil, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(apply.New(w.client, "test").Apply(ctx, own.HealthCheck(settings))).To(Succeed())
		round(t, pool, true)
		g.Expect(owner("workers-spot")).To(Equal(w.ns + "/workers-spot"))
		g.Expect(owner(other)).To(Equal(w.ns + "/workers"))
	})
	t.Run("When machines are no more interruptible only the pool's own should go", func(t *testing.T) {
		g := NewWithT(t)
		round(t, pool, false)
		g.Expect(owner("workers-spot")).To(Equal(w.ns + "/workers-spot"))
		g.Expect(owner(other)).To(BeEmpty())
		g.Expect(round(t, pool, false)).To(BeZero())
	})
	t.Run("When the namesake is gone the published name should be used again, and the other go", func(t *testing.T) {
		g := NewWithT(t)
		round(t, pool, true)
		g.Expect(owner(other)).To(Equal(w.ns + "/workers"))
		g.Expect(w.client.Delete(ctx, namesake)).To(Succeed())
		mhc := &clusterv1.MachineHealthCheck{}
		mhc.Namespace, mhc.Name = w.hcpNS, "workers-spot"
		g.Expect(w.client.Delete(ctx, mhc)).To(Succeed())
		round(t, pool, true)
		g.Expect(owner("workers-spot")).To(Equal(w.ns + "/workers"))
		g.Expect(owner(other)).To(BeEmpty())
	})
}
