package gateway

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/changes"
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

// scene is a management cluster on a real API server.
type scene struct {
	*testing.T
	c  client.WithWatch
	ns string
}

func newScene(t *testing.T) *scene {
	g, env := NewWithT(t), testenv.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, hyperv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	return &scene{t, env.Client(t, scheme), env.Namespace(t)}
}

// cluster makes a hosted cluster with the namespace of its control plane.
func (s *scene) cluster(name, host string, annotations map[string]string) *hyperv1.HostedCluster {
	g, hc := NewWithT(s.T), testenv.HostedCluster(s.ns, name)
	hc.Spec.KubeAPIServerDNSName, hc.Annotations = host, annotations
	g.Expect(s.c.Create(s.Context(), hc)).To(Succeed())
	s.Cleanup(func() { _ = s.c.Delete(context.Background(), hc) })
	g.Expect(s.c.Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceOf(hc), Labels: map[string]string{hyperv1.HostedControlPlaneLabel: "true"},
		Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(hc)}}})).To(Succeed())
	return hc
}

// serve makes the Service of an API server.
func (s *scene) serve(hc *hyperv1.HostedCluster, port int32) {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: names.KubeAPIServer}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}}}
	NewWithT(s.T).Expect(s.c.Create(s.Context(), svc)).To(Succeed())
}

func (s *scene) routes(hc *hyperv1.HostedCluster) []unstructured.Unstructured {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(tlsRoute.WithVersion("v1"))
	l.SetKind("TLSRouteList")
	NewWithT(s.T).Expect(s.c.List(s.Context(), l, client.InNamespace(names.NamespaceOf(hc)))).To(Succeed())
	return l.Items
}

func (s *scene) operator(c client.Client, of scope.Identity) *Reconciler {
	return &Reconciler{Client: c, Live: c, Mapper: c.RESTMapper(), Gateway: client.ObjectKey{Namespace: "infra", Name: "public"}, Operator: of}
}

func TestRoutes(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	c, serve, routes := s.c, s.serve, s.routes
	pass := func(c client.Client) error {
		_, err := s.operator(c, scope.Identity{}).Reconcile(t.Context(), ctrl.Request{})
		return err
	}
	cluster := func(name, host string) *hyperv1.HostedCluster { return s.cluster(name, host, nil) }
	g.Expect(pass(c)).To(Succeed(), "without Gateway API nothing is done")
	testenv.Start(t).Install(t, definition())

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

	// What others do to a route is repaired, though nothing tells of it.
	again := func() time.Duration {
		result, err := s.operator(c, scope.Identity{}).Reconcile(t.Context(), ctrl.Request{})
		g.Expect(err).NotTo(HaveOccurred())
		return result.RequeueAfter
	}
	g.Expect(again()).To(Equal(repair))
	edited := routes(first)[0]
	g.Expect(unstructured.SetNestedSlice(edited.Object, []any{"api.other.example.com"}, "spec", "hostnames")).To(Succeed())
	g.Expect(c.Update(t.Context(), &edited)).To(Succeed())
	again()
	g.Expect(routes(first)[0].Object["spec"]).To(HaveKeyWithValue("hostnames", []any{"api.first.example.com"}))
	deleted := routes(first)[0]
	g.Expect(c.Delete(t.Context(), &deleted)).To(Succeed())
	again()
	g.Expect(routes(first)).To(HaveLen(1))

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

// TestTwoOperators has the operator for new hosted clusters beside the one for those of before: each looks after its own, and sees the routes of both.
func TestTwoOperators(t *testing.T) {
	testenv.Start(t).Install(t, definition())
	g, s := NewWithT(t), newScene(t)
	c, routes := s.c, s.routes
	newer, legacy := s.operator(c, scope.Identity{PrivateCAPI: true}), s.operator(c, scope.Identity{Scope: ptr.To(hyperv1.LegacyScope)})
	both := func() {
		for range 2 {
			for _, r := range []*Reconciler{newer, legacy} {
				_, err := r.Reconcile(t.Context(), ctrl.Request{})
				g.Expect(err).NotTo(HaveOccurred())
			}
		}
	}
	cluster := func(name, host string, annotations map[string]string) *hyperv1.HostedCluster {
		hc := s.cluster(name, host, annotations)
		s.serve(hc, 6443)
		return hc
	}
	private := cluster("private", "api.private.example.com", map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"})
	before := cluster("before", "api.before.example.com", map[string]string{hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope})
	expect := func(what string) {
		t.Helper()
		g.Expect(routes(private)).To(HaveLen(1), what)
		g.Expect(routes(before)).To(HaveLen(1), what)
	}
	both()
	expect("When two operators run each should leave the other's routes alone")
	first := routes(before)[0].GetUID()

	// While a cluster is moved it is neither operator's, and others go on to change.
	edit := func(hc *hyperv1.HostedCluster, do func()) (seen []bool) {
		was := hc.DeepCopy()
		do()
		g.Expect(c.Update(t.Context(), hc)).To(Succeed())
		for _, r := range []*Reconciler{newer, legacy} {
			seen = append(seen, changes.Of(r.seen).Update(event.UpdateEvent{ObjectOld: was, ObjectNew: hc}))
		}
		return seen
	}
	g.Expect(edit(before, func() { before.Annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation] = "true" })).To(Equal([]bool{false, true}))
	thief := cluster("thief", "api.before.example.com", map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"})
	both()
	expect("When a cluster is being moved its route should stay")
	g.Expect(routes(thief)).To(BeEmpty(), "its name stays its own, too")
	g.Expect(edit(before, func() { before.Annotations = map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"} })).To(Equal([]bool{true, false}), "whose it is now has to see it")
	both()
	expect("When a cluster was moved its new operator should have the route")
	g.Expect(routes(before)[0].GetUID()).To(Equal(first), "it was never away")
	g.Expect(edit(before, func() { before.Annotations["example.com/note"] = "other" })).To(Equal([]bool{false, false}))
	g.Expect(c.Delete(t.Context(), thief)).To(Succeed())

	// What a cluster that is gone leaves is removed by the new operator, whosever it was.
	gone := cluster("gone", "api.gone.example.com", map[string]string{hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope})
	both()
	g.Expect(routes(gone)).To(HaveLen(1))
	g.Expect(c.Delete(t.Context(), gone)).To(Succeed())
	_, err := legacy.Reconcile(t.Context(), ctrl.Request{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(routes(gone)).To(HaveLen(1))
	both()
	g.Expect(routes(gone)).To(BeEmpty())
	expect("others stay")
}

func TestParse(t *testing.T) {
	for _, text := range []string{"public", "/public", "infra/", "a/b/c"} {
		t.Run("When it is "+text+" it should be refused", func(t *testing.T) {
			_, err := Parse(text)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("NAMESPACE/NAME")))
		})
	}
}
