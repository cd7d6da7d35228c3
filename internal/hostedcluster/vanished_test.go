package hostedcluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/adoption"
)

func TestVanished(t *testing.T) {
	// taken is a world with a HostedCluster that was just taken on and is gone although our finalizer was stored.
	taken := func(t *testing.T) (*world, *Reconciler, *clocktesting.FakePassiveClock) {
		g := NewWithT(t)
		w := newWorld(t)
		clk := clocktesting.NewFakePassiveClock(time.Now())
		r := w.reconciler(w.client)
		r.Clock = clk
		g.Expect(w.client.Create(t.Context(), w.hostedCluster())).To(Succeed())
		_, err := r.Reconcile(t.Context(), w.request("demo"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.client.Get(t.Context(), client.ObjectKey{Name: w.ns + "-demo"}, &corev1.Namespace{})).To(Succeed())
		hc, err := w.get(t.Context(), "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.client.Patch(t.Context(), hc, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		g.Expect(w.client.Delete(t.Context(), hc)).To(Succeed())
		g.Expect(w.missing(t.Context(), &hyperv1.HostedCluster{}, w.ns, "demo")()).To(Succeed())
		return w, r, clk
	}
	// passes runs the reconciler until the namespace is gone, for a while.
	passes := func(t *testing.T, w *world, r *Reconciler) error {
		var err error
		for range 10 {
			if _, err = r.Reconcile(t.Context(), w.request("demo")); err != nil {
				return err
			}
			if err = w.finishNamespace(t.Context(), w.ns+"-demo"); err != nil {
				return err
			}
		}
		return nil
	}
	t.Run("When a cluster vanishes while it is taken on nothing of it should stay", func(t *testing.T) {
		g := NewWithT(t)
		w, r, _ := taken(t)
		g.Expect(passes(t, w, r)).To(Succeed())
		g.Expect(w.missing(t.Context(), &corev1.Namespace{}, "", w.ns+"-demo")()).To(Succeed())
		secret := &corev1.Secret{}
		g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "pull"}, secret)).To(Succeed())
		g.Expect(secret.Annotations).To(BeEmpty())
		g.Expect(r.adopted.Get(client.ObjectKey{Namespace: w.ns, Name: "demo"}, r.Clock.Now())).To(BeNil())
	})
	t.Run("When somebody takes the finalizer off later what is left should be left", func(t *testing.T) {
		g := NewWithT(t)
		w, r, clk := taken(t)
		clk.SetTime(clk.Now().Add(adoption.Window + time.Second))
		g.Expect(passes(t, w, r)).To(Succeed())
		ns := &corev1.Namespace{}
		g.Expect(w.client.Get(t.Context(), client.ObjectKey{Name: w.ns + "-demo"}, ns)).To(Succeed())
		g.Expect(ns.DeletionTimestamp).To(BeNil())
	})
	t.Run("When another operator finds no cluster it should leave the namespace alone", func(t *testing.T) {
		g := NewWithT(t)
		w, _, _ := taken(t)
		g.Expect(passes(t, w, w.reconciler(w.client))).To(Succeed())
		ns := &corev1.Namespace{}
		g.Expect(w.client.Get(t.Context(), client.ObjectKey{Name: w.ns + "-demo"}, ns)).To(Succeed())
		g.Expect(ns.DeletionTimestamp).To(BeNil())
	})
}
