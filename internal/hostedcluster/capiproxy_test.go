package hostedcluster

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/capi"
)

func TestExpectProxy(t *testing.T) {
	t.Run("When the operator for private types is started with the management cluster itself it should refuse, and with a proxy go on", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		through, _ := w.behindProxy(t)
		g.Expect(capi.ExpectProxy(t.Context(), w.env.Config)).To(MatchError(And(ContainSubstring("no proxy before it"), ContainSubstring("capi-proxy"))))
		g.Expect(capi.ExpectProxy(t.Context(), through)).To(Succeed())
	})
	t.Run("When the API server is away it should say so", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
		defer server.Close()
		NewWithT(t).Expect(capi.ExpectProxy(t.Context(), &rest.Config{Host: server.URL})).To(MatchError(ContainSubstring("status 503")))
	})
}

func TestLeftInStandard(t *testing.T) {
	t.Run("When a control plane is gone and its Cluster isn't, the hosted cluster should be left to the operator from before", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		ctx := t.Context()
		_, through := w.behindProxy(t)
		hc := w.withMachines(t)
		delete(hc.Annotations, scopeKey)
		g.Expect(w.client.Create(ctx, hc)).To(Succeed())
		g.Expect(w.settleWithMachines(ctx, w.client)).To(Succeed()) // by an operator from before
		cluster := &clusterv1.Cluster{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "demo-abcde"}, cluster)).To(Succeed())
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "demo"}, hcp)).To(Succeed())
		hcp.Finalizers = nil
		g.Expect(w.client.Update(ctx, hcp)).To(Succeed())
		g.Expect(client.IgnoreNotFound(w.client.Delete(ctx, hcp))).To(Succeed())
		live, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.client.Delete(ctx, live)).To(Succeed())

		r := w.reconciler(through)
		r.PrivateCAPI, r.Direct = true, w.client
		_, err = r.Reconcile(ctx, w.request("demo"))
		g.Expect(err).NotTo(HaveOccurred())
		live, err = w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live.Annotations).To(HaveKeyWithValue(scopeKey, hyperv1.LegacyScope))
		g.Expect(live.Annotations).NotTo(HaveKey(privateKey))
	})
}
