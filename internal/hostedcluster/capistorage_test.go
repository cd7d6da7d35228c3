package hostedcluster

import (
	"context"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/proxy"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/status"
)

const (
	scopeKey, privateKey = hyperv1.HostedClusterScopeAnnotation, hyperv1.PrivateCAPITypesAnnotation
	lockKey              = hyperv1.PrivateCAPIMigrationInProgressAnnotation
)

func TestSpeaksPrivately(t *testing.T) {
	local := func(o *state.Observed) { o.HC.Spec.Platform.Type = hyperv1.LocalPlatform }
	for name, tc := range map[string]struct {
		change func(*state.Observed)
		err    bool
	}{
		"When its operator adds proxies it should be taken":                   {change: func(o *state.Observed) { local(o); o.OperatorLabels = ownLabels }},
		"When its operator is from before private types it should be refused": {change: func(o *state.Observed) { local(o); o.OperatorLabels = map[string]string{} }, err: true},
		"When its operator's labels are unknown it should be taken":           {change: func(o *state.Observed) { local(o); o.OperatorLabels = nil }},
		"When it has no machines any operator should do":                      {change: func(o *state.Observed) { o.OperatorLabels = map[string]string{} }},
		"When types are standard any operator should do":                      {change: func(o *state.Observed) { local(o); o.OperatorLabels, o.PrivateCAPI = map[string]string{}, false }},
	} {
		t.Run(name, func(t *testing.T) {
			obs := &state.Observed{HC: hostedclustertest.Example("clusters", "r/i:1"), PrivateCAPI: true, OperatorImage: "r/cpo:1"}
			tc.change(obs)
			err := status.SpeaksPrivately(obs)
			if tc.err {
				NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("r/cpo:1"), ContainSubstring(hyperv1.ControlPlaneOperatorImageAnnotation))))
			} else {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}

// behindProxy leads to the API server of a world through the proxy, as the operator does with private types.
func (w *world) behindProxy(t testing.TB) (*rest.Config, client.WithWatch) {
	t.Helper()
	g := NewWithT(t)
	w.env.InstallPrivateCAPI(t)
	tls, err := rest.TLSConfigFor(w.env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	up, err := proxy.NewUpstream(proxy.UpstreamConfig{URL: w.env.Config.Host, TLS: tls})
	g.Expect(err).NotTo(HaveOccurred())
	front := httptest.NewServer(proxy.New(proxy.Config{Upstream: up}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	cfg := &rest.Config{Host: front.URL, QPS: -1}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: w.client.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	return cfg, c
}

// stored reads an object as it is stored in a private group.
func (w *world) stored(ctx context.Context, group, version, kind, ns, name string) (map[string]any, error) {
	u := unstructuredOf(group, version, kind)
	err := w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, u)
	return u.Object, err
}

func TestPrivateStorage(t *testing.T) {
	w := newWorld(t)
	_, through := w.behindProxy(t)
	ctx := t.Context()
	hc := w.withMachines(t)
	delete(hc.Annotations, scopeKey)
	pass := func(ctx context.Context) error {
		r := w.reconciler(through)
		r.Capabilities.ClusterAPI, r.PrivateCAPI = true, true
		_, err := r.Reconcile(ctx, w.request("demo"))
		return err
	}
	ns := w.ns + "-demo"
	NewWithT(t).Expect(w.client.Create(ctx, hc)).To(Succeed())

	t.Run("When a hosted cluster is taken on it should be noted where its objects are, before there is one", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(pass(ctx)).To(Succeed())
		live, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live.Annotations).To(HaveKeyWithValue(privateKey, "true"))
		g.Expect(live.Finalizers).To(ContainElement(hyperv1.HostedClusterFinalizer))
		g.Expect(w.condition(ctx, "demo", hyperv1.PrivateCAPITypes)()).To(Equal("True/PrivateTypesInUse"))
	})
	t.Run("When it has settled everything should be stored privately and nothing under the standard names", func(t *testing.T) {
		g := NewWithT(t)
		for range 5 {
			g.Expect(pass(ctx)).To(Succeed())
		}
		cluster, err := w.stored(ctx, translate.Private, "v1beta2", "Cluster", ns, "demo-abcde")
		g.Expect(err).NotTo(HaveOccurred())
		spec := cluster["spec"].(map[string]any)
		g.Expect(spec["infrastructureRef"]).To(HaveKeyWithValue("apiGroup", "infrastructure."+translate.Private))
		g.Expect(spec["controlPlaneRef"]).To(HaveKeyWithValue("apiGroup", "hypershift.openshift.io"))
		_, err = w.stored(ctx, "infrastructure."+translate.Private, "v1beta1", "LocalCluster", ns, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.missing(ctx, &clusterv1.Cluster{}, ns, "demo-abcde")()).To(Succeed())

		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "demo"}, hcp)).To(Succeed())
		g.Expect(hcp.Annotations).To(HaveKeyWithValue(privateKey, "true"))
		for _, name := range []string{"cluster-api", "capi-provider"} {
			d := &appsv1.Deployment{}
			g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, d)).To(Succeed())
			g.Expect(d.Spec.Template.Spec.InitContainers[0].Name).To(Equal("kube-apiserver-proxy"))
			g.Expect(d.Spec.Template.Spec.InitContainers[0].RestartPolicy).To(HaveValue(BeEquivalentTo("Always")))
			g.Expect(d.Spec.Template.Spec.InitContainers[0].Image).To(Equal(w.registry.Host + "/operator:1"))
		}
		for _, name := range []string{"cluster-api", "capi-provider", "control-plane-operator"} {
			role := &rbacv1.Role{}
			g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, role)).To(Succeed())
			var groups []string
			for _, rule := range role.Rules {
				groups = append(groups, rule.APIGroups...)
			}
			g.Expect(groups).To(ContainElement(translate.Private), name)
			g.Expect(groups).NotTo(ContainElement(translate.Standard), name)
		}
	})
	t.Run("When somebody takes the annotation off it should be put back", func(t *testing.T) {
		g := NewWithT(t)
		live, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		before := live.DeepCopy()
		delete(live.Annotations, privateKey)
		g.Expect(w.client.Patch(ctx, live, client.MergeFrom(before))).To(Succeed())
		g.Expect(pass(ctx)).To(Succeed())
		live, err = w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live.Annotations).To(HaveKeyWithValue(privateKey, "true"))
	})
	t.Run("When it is deleted its Cluster should be", func(t *testing.T) {
		g := NewWithT(t)
		u := unstructuredOf(translate.Private, "v1beta2", "Cluster")
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "demo-abcde"}, u)).To(Succeed())
		u.SetFinalizers([]string{clusterv1.ClusterFinalizer})
		g.Expect(w.client.Update(ctx, u)).To(Succeed())
		live, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.client.Delete(ctx, live)).To(Succeed())
		g.Expect(pass(ctx)).To(Succeed())
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "demo-abcde"}, u)).To(Succeed())
		g.Expect(u.GetDeletionTimestamp()).NotTo(BeNil())
	})
}

func TestLegacyStorage(t *testing.T) {
	t.Run("When an operator for private types finds a hosted cluster from before it should mark it, say so and touch nothing", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		ctx := t.Context()
		_, through := w.behindProxy(t)
		hc := w.withMachines(t)
		delete(hc.Annotations, scopeKey)
		g.Expect(w.client.Create(ctx, hc)).To(Succeed())
		g.Expect(w.settleWithMachines(ctx, w.client)).To(Succeed()) // by an operator from before
		before := &clusterv1.Cluster{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "demo-abcde"}, before)).To(Succeed())

		r := w.reconciler(through)
		r.Capabilities.ClusterAPI, r.PrivateCAPI = true, true
		for range 3 {
			_, err := r.Reconcile(ctx, w.request("demo"))
			g.Expect(err).NotTo(HaveOccurred())
		}
		live, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live.Annotations).To(HaveKeyWithValue(scopeKey, hyperv1.LegacyScope))
		g.Expect(live.Annotations).NotTo(HaveKey(privateKey))
		g.Expect(w.condition(ctx, "demo", hyperv1.PrivateCAPITypes)()).To(Equal("False/AwaitingMigration"))
		_, err = w.stored(ctx, translate.Private, "v1beta2", "Cluster", w.ns+"-demo", "demo-abcde")
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		g.Expect(err).To(HaveOccurred())
		after := &clusterv1.Cluster{}
		g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(before), after)).To(Succeed())
		g.Expect(after).To(BeComparableTo(before))

		legacy := w.reconciler(w.client)
		legacy.Capabilities.ClusterAPI, legacy.Scope = true, ptr.To(hyperv1.LegacyScope)
		_, err = legacy.Reconcile(ctx, w.request("demo"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.condition(ctx, "demo", hyperv1.PrivateCAPITypes)()).To(Equal("False/AwaitingMigration"), "the other operator's condition stays")
		g.Expect(w.condition(ctx, "demo", hyperv1.ReconciliationSucceeded)()).To(Equal("True/" + hyperv1.ReconciliationSucceededReason))
	})
}

func TestUnclaimedDeletion(t *testing.T) {
	t.Run("When a hosted cluster that nobody has claimed is being deleted it should become private, so that its NodePools know whose they are", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		ctx := t.Context()
		hc := w.withMachines(t)
		delete(hc.Annotations, scopeKey)
		hc.Finalizers = []string{hyperv1.HostedClusterFinalizer, "example.com/keep"}
		g.Expect(w.client.Create(ctx, hc)).To(Succeed())
		g.Expect(w.client.Delete(ctx, hc)).To(Succeed())
		r := w.reconciler(w.client)
		r.PrivateCAPI = true
		_, err := r.Reconcile(ctx, w.request("demo"))
		g.Expect(err).NotTo(HaveOccurred())
		live, err := w.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live.Annotations).To(HaveKeyWithValue(privateKey, "true"))
		live.Finalizers = nil
		g.Expect(w.client.Update(ctx, live)).To(Succeed())
	})
}

func unstructuredOf(group, version, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	return u
}
