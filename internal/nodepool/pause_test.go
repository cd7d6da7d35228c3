package nodepool

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/release"
)

// TestPauseOfAPoolThatCannotGoOn: a pause stops machines, so nothing that keeps a pool from going on may keep it from being paused.
func TestPauseOfAPoolThatCannotGoOn(t *testing.T) {
	active := hyperv1.NodePoolReconciliationActiveConditionType
	live := func(o *observed) {
		o.deployment, o.set, o.healthCheck = &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}, &clusterv1.MachineHealthCheck{}
		o.spotChecks = []*clusterv1.MachineHealthCheck{{}}
	}
	paused := func(o *observed) {
		for _, obj := range (&pass{obs: o}).workloads() {
			obj.SetAnnotations(map[string]string{machines.PausedAnnotation: "true"})
		}
	}
	until := func(value string) func(*observed) {
		return func(o *observed) { o.pool.Spec.PausedUntil = &value }
	}
	for name, closed := range map[string]func(*observed){
		"When the upgrade type is unknown":            func(o *observed) { o.pool.Spec.Management.UpgradeType = "Sideways" },
		"When the platform isn't the HostedCluster's": func(o *observed) { o.pool.Spec.Platform.Type = hyperv1.NonePlatform },
		"When the release can't be read":              func(o *observed) { o.release, o.releaseErr = nil, errors.New("no such image") },
		"When there is no ignition endpoint":          func(o *observed) { o.hc.Status.IgnitionEndpoint = "" },
		"When the authority isn't there":              func(o *observed) { o.ignitionCA = nil },
		"When the architecture isn't the release's":   func(o *observed) { o.pool.Spec.Arch = hyperv1.ArchitectureARM64 },
		"When the configuration is wrong":             func(o *observed) { o.userConfigErr = errors.New("no such ConfigMap") },
		"When the API server has not been up":         func(o *observed) { o.hc.Status.KubeConfig = nil },
		"When there is no image for machines":         func(o *observed) { o.release.Images = nil },
	} {
		t.Run(name+" it should pause the machines and their repair, and come back when the pause ends", func(t *testing.T) {
			g := NewWithT(t)
			p := planFor(example(t, live, closed, until("2026-11-21T12:00:02Z")), noon, "token")
			g.Expect(p.pause).To(HaveLen(4))
			g.Expect(writes(p)).To(BeFalse())
			g.Expect(p.recheckAfter).To(Equal(3 * time.Second))
			g.Expect(of(p, active)).To(Equal("False/ReconciliationPaused: spec.pausedUntil pauses the pool until 2026-11-21T12:00:02Z"))
		})
		t.Run(name+" and the pause is over it should let them go on", func(t *testing.T) {
			g := NewWithT(t)
			p := planFor(example(t, live, paused, closed, until("2026-11-21T11:00:00Z")), noon, "token")
			g.Expect(p.unpause).To(HaveLen(4))
			g.Expect(writes(p)).To(BeFalse())
			g.Expect(of(p, active)).To(HavePrefix("True/ReconciliationActive"))
		})
	}
	t.Run("When it is paused already it should change nothing", func(t *testing.T) {
		g := NewWithT(t)
		p := planFor(example(t, live, paused, until("true")), noon, "token")
		g.Expect(p.pause).To(BeEmpty())
		g.Expect(p.unpause).To(BeEmpty())
		g.Expect(p.recheckAfter).To(BeZero())
	})
	t.Run("When something else is due before the pause ends it should come back then", func(t *testing.T) {
		obs := example(t, live, func(o *observed) { o.release, o.releaseErr = nil, errors.New("no such image") }, until("2026-11-21T13:00:00Z"))
		NewWithT(t).Expect(planFor(obs, noon, "token").recheckAfter).To(Equal(retryRelease))
	})
}

// pendingReleases are of a registry that takes its time.
type pendingReleases struct{}

func (pendingReleases) Lookup(context.Context, string, []byte) (*release.Release, error) {
	return nil, release.ErrPending
}

func TestPauseReconcile(t *testing.T) {
	t.Run("When the release can't be looked up for now a pause should begin and end all the same", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.client.Create(t.Context(), examplePool(w.ns))).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client)).To(Succeed())
		w.releases = pendingReleases{}
		pass := func() time.Duration {
			result, err := w.reconciler(w.client).Reconcile(t.Context(), w.request())
			g.Expect(err).NotTo(HaveOccurred())
			return result.RequeueAfter
		}
		pool := w.pool(t)
		pool.Spec.PausedUntil = ptr.To(w.clock.Now().Add(30 * time.Second).UTC().Format(time.RFC3339))
		g.Expect(w.client.Update(t.Context(), pool)).To(Succeed())
		g.Expect(pass()).To(And(BeNumerically(">", 29*time.Second), BeNumerically("<=", 31*time.Second)))
		g.Expect(w.deployment(t).Annotations).To(HaveKeyWithValue(machines.PausedAnnotation, "true"))
		g.Expect(w.condition(t, hyperv1.NodePoolReconciliationActiveConditionType)).To(Equal("False/ReconciliationPaused"))
		pool = w.pool(t)
		pool.Spec.PausedUntil = nil
		g.Expect(w.client.Update(t.Context(), pool)).To(Succeed())
		g.Expect(pass()).To(Equal(pendingRecheck))
		g.Expect(w.deployment(t).Annotations).NotTo(HaveKey(machines.PausedAnnotation))
		g.Expect(w.condition(t, hyperv1.NodePoolReconciliationActiveConditionType)).To(Equal("True/ReconciliationActive"))
	})
}
