package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/testenv"
)

func TestOwnsPool(t *testing.T) {
	private, legacy := map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"}, map[string]string{hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope}
	for name, tc := range map[string]struct {
		cluster, pool map[string]string // annotations; nil cluster: it is gone
		adopted       bool
		new, legacy   bool
	}{
		"When the hosted cluster is private the pool should be the new operator's":           {cluster: private, new: true},
		"When the hosted cluster is from before it should be the legacy operator's":          {cluster: legacy, adopted: true, legacy: true},
		"When it is not known where the machines are nobody should touch it":                 {cluster: map[string]string{}},
		"When the hosted cluster is gone a private pool should be cleaned up by the new one": {pool: private, adopted: true, new: true},
		"When the hosted cluster is gone a pool from before should not":                      {adopted: true, legacy: true},
		"When there was never a hosted cluster any may say so":                               {new: true, legacy: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: tc.pool}}
			if tc.adopted {
				pool.Finalizers = []string{Finalizer}
			}
			var hc *hyperv1.HostedCluster
			if tc.cluster != nil {
				hc = &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: tc.cluster}}
			}
			g.Expect((&Reconciler{PrivateCAPI: true}).owns(pool, hc)).To(Equal(tc.new), "new operator")
			g.Expect((&Reconciler{Scope: ptr.To(hyperv1.LegacyScope)}).owns(pool, hc)).To(Equal(tc.legacy), "legacy operator")
		})
	}
}

func TestAcknowledgesLock(t *testing.T) {
	t.Run("When the HostedCluster is locked its operator should acknowledge on the pool once, and the other one not", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		ctx := t.Context()
		hc := &hyperv1.HostedCluster{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: "demo"}, hc)).To(Succeed())
		hc.Annotations = map[string]string{
			hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope, hyperv1.PrivateCAPIMigrationInProgressAnnotation: "true", hyperv1.PrivateCAPIMigrationLockAnnotation: "lock-1",
		}
		g.Expect(w.client.Update(ctx, hc)).To(Succeed())
		pool := examplePool(w.ns)
		g.Expect(w.client.Create(ctx, pool)).To(Succeed())
		for _, r := range []*Reconciler{{PrivateCAPI: true}, {Scope: ptr.To(hyperv1.LegacyScope)}} {
			counting := testenv.NewFaultClient(w.client, testenv.FailWrite, 0)
			r.Client = counting
			for range 2 {
				_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)})
				g.Expect(err).NotTo(HaveOccurred())
			}
			want := 1
			if r.PrivateCAPI {
				want = 0
			}
			g.Expect(counting.Writes()).To(Equal(want))
		}
		g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(pool), pool)).To(Succeed())
		g.Expect(pool.Annotations).To(HaveKeyWithValue(hyperv1.PrivateCAPIMigrationAckAnnotation, "lock-1"))
		// Whatever is asked for meanwhile waits: more machines, another release, its end.
		pool.Spec.Replicas, pool.Spec.Release.Image, pool.Finalizers = ptr.To(int32(7)), "registry.example/release:2", []string{Finalizer}
		g.Expect(w.client.Update(ctx, pool)).To(Succeed())
		g.Expect(w.client.Delete(ctx, pool)).To(Succeed())
		for _, r := range []*Reconciler{{PrivateCAPI: true}, {Scope: ptr.To(hyperv1.LegacyScope)}} {
			testenv.ExpectQuiet(t, w.client, func(c client.WithWatch) error {
				r.Client = c
				_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)})
				return err
			})
		}
	})
}
