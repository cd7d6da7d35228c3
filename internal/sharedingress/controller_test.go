package sharedingress

import (
	"context"
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// On a real API server: what hosted clusters and their Services say is what the table says.
func TestController(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, hyperv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	c, ns := env.Client(t, scheme), env.Namespace(t)
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{Scheme: scheme, Controller: process.Queue(), Cache: CacheOptions(), Metrics: metricsserver.Options{BindAddress: "0"}})
	g.Expect(err).NotTo(HaveOccurred())
	r := &Reconciler{Client: mgr.GetClient(), Proxy: NewProxy(DefaultLimits())}
	g.Expect(r.SetupWithManager(mgr)).To(Succeed())
	g.Expect(r.Ready()).To(BeFalse())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() { stop(); <-done })

	var clusters []*hyperv1.HostedCluster
	var services []*corev1.Service
	for i := range 10 {
		hc := testenv.HostedCluster(ns, fmt.Sprintf("c%d", i))
		hc.Spec.KubeAPIServerDNSName = fmt.Sprintf("api.c%d.example.com", i)
		hc.Spec.ClusterID = fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		g.Expect(c.Create(ctx, hc)).To(Succeed())
		g.Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceOf(hc)}})).To(Succeed())
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: names.KubeAPIServer}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 6443}}}}
		g.Expect(c.Create(ctx, svc)).To(Succeed())
		clusters, services = append(clusters, hc), append(services, svc)
	}
	g.Eventually(r.Ready, patience).Should(BeTrue())
	for i, hc := range clusters {
		g.Eventually(func() *Backend { return r.Proxy.Table().Named(hc.Spec.KubeAPIServerDNSName) }, patience).ShouldNot(BeNil())
		b := r.Proxy.Table().Named(hc.Spec.KubeAPIServerDNSName)
		g.Expect(b.Address).To(Equal(services[i].Spec.ClusterIP + ":6443"))
		g.Eventually(func() *Backend { return r.Proxy.Table().Cluster(hc.Spec.ClusterID) }, patience).ShouldNot(BeNil())
	}
	g.Expect(c.Delete(ctx, services[3])).To(Succeed())
	g.Eventually(func() *Backend { return r.Proxy.Table().Named("api.c3.example.com") }, patience).Should(BeNil())
	g.Expect(c.Delete(ctx, clusters[4])).To(Succeed())
	g.Eventually(func() *Backend { return r.Proxy.Table().Named("api.c4.example.com") }, patience).Should(BeNil())
	g.Expect(r.Proxy.Table().Named("api.c5.example.com")).NotTo(BeNil())

	// Another HostedCluster, of somebody else, whose namespace and name give the control-plane namespace of v-x. It is refused, but says how it would be reached.
	victim := testenv.HostedCluster(ns, "v-x")
	victim.Spec.KubeAPIServerDNSName = "api.victim.example.com"
	victim.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AllowedCIDRBlocks: []hyperv1.CIDRBlock{"192.0.2.0/24"}}
	g.Expect(c.Create(ctx, victim)).To(Succeed())
	g.Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceOf(victim),
		Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(victim)}}})).To(Succeed())
	g.Expect(c.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(victim), Name: names.KubeAPIServer}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 6443}}}})).To(Succeed())
	g.Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns + "-v"}})).To(Succeed())
	other := testenv.HostedCluster(ns+"-v", "x")
	other.Spec.KubeAPIServerDNSName = "api.other.example.com"
	g.Expect(names.NamespaceOf(other)).To(Equal(names.NamespaceOf(victim)))
	g.Expect(c.Create(ctx, other)).To(Succeed())
	later := testenv.HostedCluster(ns, "later") // whose name leads somewhere once the table has seen the others
	later.Spec.KubeAPIServerDNSName = "api.later.example.com"
	g.Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceOf(later)}})).To(Succeed())
	g.Expect(c.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(later), Name: names.KubeAPIServer}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 6443}}}})).To(Succeed())
	g.Expect(c.Create(ctx, later)).To(Succeed())
	for _, name := range []string{"api.later.example.com", "api.victim.example.com"} {
		g.Eventually(func() *Backend { return r.Proxy.Table().Named(name) }, patience).ShouldNot(BeNil(), name)
	}
	g.Eventually(func() *Backend { return r.Proxy.Table().Named("api.other.example.com") }, patience).
		Should(BeNil(), "When a namespace is another's a name should not lead around that one's allowedCIDRBlocks")
}
