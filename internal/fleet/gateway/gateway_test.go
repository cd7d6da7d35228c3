package gateway

import (
	"context"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// definition is as much of TLSRoutes as is needed: the real one is not among our modules.
func definition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "tlsroutes.gateway.networking.k8s.io", Annotations: map[string]string{"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api/pull/4298"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: tlsRoute.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "tlsroutes", Singular: "tlsroute", Kind: tlsRoute.Kind, ListKind: "TLSRouteList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", XPreserveUnknownFields: ptr.To(true)}}}}}},
		},
	}
}

func TestRoutes(t *testing.T) {
	g, env := NewWithT(t), testenv.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, hyperv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	c, ns := env.Client(t, scheme), env.Namespace(t)
	reconciler := func(c client.Client) *Reconciler {
		return &Reconciler{Client: c, Live: c, Mapper: c.RESTMapper(), Gateway: client.ObjectKey{Namespace: "infra", Name: "public"}}
	}
	pass := func(c client.Client) error {
		_, err := reconciler(c).Reconcile(t.Context(), ctrl.Request{})
		return err
	}
	g.Expect(pass(c)).To(Succeed(), "without Gateway API nothing is done")
	env.Install(t, definition())

	cluster := func(name, host string) *hyperv1.HostedCluster {
		hc := testenv.HostedCluster(ns, name)
		hc.Spec.KubeAPIServerDNSName = host
		g.Expect(c.Create(t.Context(), hc)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(context.Background(), hc) })
		g.Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceOf(hc), Labels: map[string]string{hyperv1.HostedControlPlaneLabel: "true"},
			Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(hc)}}})).To(Succeed())
		return hc
	}
	serve := func(hc *hyperv1.HostedCluster, port int32) {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: names.KubeAPIServer}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}}}
		g.Expect(c.Create(t.Context(), svc)).To(Succeed())
	}
	routes := func(hc *hyperv1.HostedCluster) (list []unstructured.Unstructured) {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(tlsRoute.WithVersion("v1"))
		l.SetKind("TLSRouteList")
		g.Expect(c.List(t.Context(), l, client.InNamespace(names.NamespaceOf(hc)))).To(Succeed())
		return l.Items
	}
	first := cluster("first", "API.first.example.com")
	g.Expect(pass(c)).To(Succeed())
	g.Expect(routes(first)).To(BeEmpty(), "there is no Service yet")
	serve(first, 7443)
	g.Expect(pass(c)).To(Succeed())
	g.Expect(routes(first)).To(HaveLen(1))
	g.Expect(routes(first)[0].Object["spec"]).To(Equal(map[string]any{
		"parentRefs": []any{map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "infra", "name": "public"}},
		"hostnames":  []any{"api.first.example.com"},
		"rules":      []any{map[string]any{"backendRefs": []any{map[string]any{"group": "", "kind": "Service", "name": "kube-apiserver", "port": int64(7443)}}}},
	}))
	testenv.ExpectQuiet(t, c, func(c client.WithWatch) error { return pass(c) })

	// Who lets only some networks in gets no route, and one that was there goes.
	narrow := cluster("narrow", "api.narrow.example.com")
	serve(narrow, 6443)
	g.Expect(pass(c)).To(Succeed())
	g.Expect(routes(narrow)).To(HaveLen(1))
	narrow.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AllowedCIDRBlocks: []hyperv1.CIDRBlock{"192.0.2.0/24"}}
	g.Expect(c.Update(t.Context(), narrow)).To(Succeed())
	g.Expect(pass(c)).To(Succeed())
	g.Expect(routes(narrow)).To(BeEmpty())

	// A name of somebody else is not taken over, and a cluster that goes leaves nothing.
	thief := cluster("thief", "api.first.example.com")
	serve(thief, 6443)
	g.Expect(pass(c)).To(Succeed())
	g.Expect(append(routes(first), routes(thief)...)).To(HaveLen(1))
	g.Expect(c.Delete(t.Context(), narrow)).To(Succeed())
	g.Expect(c.Delete(t.Context(), first)).To(Succeed())
	g.Expect(c.Delete(t.Context(), thief)).To(Succeed())
	g.Expect(pass(c)).To(Succeed())
	g.Expect(routes(first)).To(BeEmpty())
}

func TestParse(t *testing.T) {
	for _, text := range []string{"public", "/public", "infra/", "a/b/c"} {
		t.Run("When it is "+text+" it should be refused", func(t *testing.T) {
			_, err := Parse(text)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("NAMESPACE/NAME")))
		})
	}
}
