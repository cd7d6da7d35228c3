package process

import (
	"context"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// TestGivenBack has client-go's own elector end with a lease.
func TestGivenBack(t *testing.T) {
	const namespace, name = "hypershift", "operator"
	// elect leads as "first" until led stops it; wrap is what our processes put around the lock.
	elect := func(g *WithT, client *fake.Clientset, wrap func(resourcelock.Interface) resourcelock.Interface, led func(stop func())) {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, name, nil, client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: "first"})
		g.Expect(err).NotTo(HaveOccurred())
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: wrap(lock), LeaseDuration: time.Hour, RenewDeadline: 30 * time.Minute, RetryPeriod: 10 * time.Minute, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { led(stop) }, OnStoppedLeading: func() {}},
		})
		g.Expect(err).NotTo(HaveOccurred())
		elector.Run(ctx)
	}
	holder := func(g *WithT, client *fake.Clientset) string {
		lease, err := client.CoordinationV1().Leases(namespace).Get(t.Context(), name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	newFence := func() *Fence { return NewFence(namespace, name, clocktesting.NewFakePassiveClock(time.Now())) }
	honestly := func(f *Fence) func(resourcelock.Interface) resourcelock.Interface {
		return func(lock resourcelock.Interface) resourcelock.Interface { return &honest{Interface: lock, fence: f} }
	}
	succeeded := func(g *WithT, client *fake.Clientset) func(stop func()) {
		return func(stop func()) {
			defer stop()
			// The elector renews once right after it has begun; what follows is minutes later.
			g.Eventually(func() bool {
				return slices.ContainsFunc(client.Actions(), func(a k8stesting.Action) bool { return a.GetVerb() == "update" })
			}).Should(BeTrue())
			lease, err := client.CoordinationV1().Leases(namespace).Get(t.Context(), name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			lease.Spec.HolderIdentity = ptr.To("second")
			_, err = client.CoordinationV1().Leases(namespace).Update(t.Context(), lease, metav1.UpdateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
		}
	}

	t.Run("When the lease is ours it should be given back, and nothing written after it", func(t *testing.T) {
		g, client, fence := NewWithT(t), fake.NewClientset(), newFence()
		elect(g, client, honestly(fence), func(stop func()) {
			g.Expect(holder(g, client)).To(Equal("first"))
			g.Expect(fence.check()).To(Succeed())
			stop()
		})
		g.Expect(holder(g, client)).To(BeEmpty())
		g.Expect(fence.check()).To(MatchError(ContainSubstring("given back")))
	})
	t.Run("When another process has taken the lease meanwhile it should keep it", func(t *testing.T) {
		g, client := NewWithT(t), fake.NewClientset()
		elect(g, client, honestly(newFence()), succeeded(g, client))
		g.Expect(holder(g, client)).To(Equal("second"))
	})
	t.Run("When client-go asks the record before it gives a lease back ours should be superfluous", func(t *testing.T) {
		g, client := NewWithT(t), fake.NewClientset()
		elect(g, client, func(lock resourcelock.Interface) resourcelock.Interface { return lock }, succeeded(g, client))
		g.Expect(holder(g, client)).To(BeEmpty(), "client-go is mended: honest can go")
	})
}
