package hostedcluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/testenv"
)

// TestComeback plays an upgrade that fails on a real API server: the control plane is played, as its operator would report it.
func TestComeback(t *testing.T) {
	w := newWorld(t)
	g, ctx := NewWithT(t), t.Context()
	bad := w.registry.PushRelease(t, "1.35.5", w.registry.KubernetesTags())
	other := w.registry.PushRelease(t, "1.35.6", w.registry.KubernetesTags())
	clock := clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second))
	settle := func() {
		for range 30 {
			counting := testenv.NewFaultClient(w.client, testenv.FailWrite, 0)
			r := w.reconciler(counting)
			r.Clock = clock
			_, err := r.Reconcile(ctx, w.request("demo"))
			g.Expect(err).NotTo(HaveOccurred())
			if counting.Writes() == 0 {
				return
			}
		}
		t.Fatal("still writing after 30 passes")
	}
	ask := func(image string) {
		hc, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		before := hc.DeepCopy()
		hc.Spec.Release.Image = image
		g.Expect(w.client.Patch(ctx, hc, client.MergeFrom(before))).To(Succeed())
		settle()
	}
	wanted := func() string {
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "demo"}, hcp)).To(Succeed())
		return hcp.Spec.ReleaseImage
	}
	report := func(failing bool, history ...configv1.UpdateHistory) {
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "demo"}, hcp)).To(Succeed())
		newest := history[0]
		hcp.Status.VersionStatus = &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: newest.Image, Version: newest.Version}, History: history, AvailableUpdates: []configv1.Release{}, ObservedGeneration: 1}
		succeeding := conditions.True(hyperv1.ClusterVersionSucceeding, hyperv1.FromClusterVersionReason, "")
		if failing {
			succeeding = conditions.False(hyperv1.ClusterVersionSucceeding, hyperv1.FromClusterVersionReason, "kube-apiserver does not start")
		}
		succeeding.ObservedGeneration = hcp.Generation
		conditions.Set(&hcp.Status.Conditions, clock.Now(), succeeding, conditions.True(hyperv1.HostedControlPlaneAvailable, "AsExpected", ""))
		g.Expect(w.client.Status().Update(ctx, hcp)).To(Succeed()) // not by a merge patch: completionTime has to be there as null
		settle()
	}
	entry := func(image, version string, complete bool) configv1.UpdateHistory {
		h := configv1.UpdateHistory{Image: image, Version: version, State: configv1.PartialUpdate, StartedTime: metav1.NewTime(clock.Now())}
		if complete {
			h.State, h.CompletionTime = configv1.CompletedUpdate, &h.StartedTime
		}
		return h
	}
	g.Expect(w.client.Create(ctx, w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Annotations[upgrades.ReturnAnnotation] = "true" }))).To(Succeed())
	settle()
	good := entry(w.image, "1.35.4", true)
	report(false, good)
	g.Expect(w.condition(ctx, "demo", upgrades.Returned)()).To(Equal("False/" + upgrades.NotFailedReason))

	ask(bad)
	g.Expect(wanted()).To(Equal(bad))
	failed := entry(bad, "1.35.5", false)
	report(true, failed, good)
	t.Run("When an upgrade begins to fail it should say when it goes back, and stay", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.condition(ctx, "demo", upgrades.Returned)()).To(Equal("False/" + upgrades.FailingReason))
		g.Expect(wanted()).To(Equal(bad))
	})
	clock.SetTime(clock.Now().Add(11 * time.Minute))
	settle()
	t.Run("When it has failed for ten minutes it should go back, say so, and leave the spec alone", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(wanted()).To(Equal(w.image))
		g.Expect(w.condition(ctx, "demo", upgrades.Returned)()).To(Equal("True/" + upgrades.FailedReason))
		g.Expect(w.message(ctx, "demo", upgrades.Returned)).To(ContainSubstring("the upgrade from 1.35.4 to 1.35.5 failed"))
		hc, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(hc.Spec.Release.Image).To(Equal(bad))
	})
	back := entry(w.image, "1.35.4", true)
	report(false, back, failed, good)
	t.Run("When the control plane is back it should stay there however long it takes, and not call itself at the expected version", func(t *testing.T) {
		g := NewWithT(t)
		clock.SetTime(clock.Now().Add(24 * time.Hour))
		settle()
		g.Expect(wanted()).To(Equal(w.image))
		g.Expect(w.condition(ctx, "demo", hyperv1.HostedClusterProgressing)()).To(Equal("False/" + hyperv1.BlockedReason))
	})
	t.Run("When another release is asked for it should be rolled out, and the note be gone", func(t *testing.T) {
		g := NewWithT(t)
		ask(other)
		g.Expect(wanted()).To(Equal(other))
		hc, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(hc.Annotations).NotTo(HaveKey(upgrades.ReturnedAnnotation))
	})
	t.Run("When the note is taken off by hand the release that failed should be tried again, once more", func(t *testing.T) {
		g := NewWithT(t)
		report(true, entry(other, "1.35.6", false), back, failed, good)
		clock.SetTime(clock.Now().Add(11 * time.Minute))
		settle()
		g.Expect(wanted()).To(Equal(w.image))
		hc, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		report(false, entry(w.image, "1.35.4", true), back, failed, good)
		g.Expect(w.client.Patch(ctx, hc, patch.Annotation(upgrades.ReturnedAnnotation, nil))).To(Succeed())
		settle()
		g.Expect(wanted()).To(Equal(other))
	})
}
