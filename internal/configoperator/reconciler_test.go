package configoperator

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/resources"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/testenv"
)

// world is one API server that is both clusters: what the operator makes in the hosted one doesn't meet what it has in the
// other. The objects of the hosted cluster have fixed names, so tests of one world run one after another.
type world struct {
	client client.WithWatch
	hosted client.WithWatch
	hcp    *hyperv1.HostedControlPlane
}

func newWorld(t testing.TB) *world {
	t.Helper()
	env := testenv.Start(t)
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{client: env.Client(t, scheme)}
	if w.hosted, err = hostedClient(bounded(env.Config), scheme); err != nil {
		t.Fatal(err)
	}
	w.reset(t)
	hcp := hostedControlPlane(func(h *hyperv1.HostedControlPlane) {
		h.ObjectMeta = metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "demo"}
		h.Spec.IssuerURL = "https://kubernetes.default.svc"
		h.Spec.PullSecret.Name = "pull-secret"
		h.Spec.Platform.Type = hyperv1.NonePlatform
		h.Spec.InfraID = "demo"
		for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
			h.Spec.Services = append(h.Spec.Services, hyperv1.ServicePublishingStrategyMapping{
				Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer},
			})
		}
		h.Spec.Etcd.ManagementType = hyperv1.Managed
		h.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}
		h.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
		h.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "10.96.0.0/16"}}
		h.Spec.Networking.NetworkType, h.Spec.Networking.AllocateNodeCIDRs = hyperv1.Other, ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
	})
	status := hcp.Status.DeepCopy()
	if err := w.client.Create(t.Context(), hcp); err != nil {
		t.Fatalf("creating a HostedControlPlane: %v", err)
	}
	hcp.Status = *status
	if err := w.client.Status().Update(t.Context(), hcp); err != nil {
		t.Fatalf("setting the status of the HostedControlPlane: %v", err)
	}
	w.hcp = hcp
	for _, o := range []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: "konnectivity-agent"},
			Data:       map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key")},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: "konnectivity-ca-bundle"}, Data: map[string]string{"ca.crt": "authority"}},
	} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatalf("creating what agents need: %v", err)
		}
	}
	return w
}

// reset removes what another test left in the hosted cluster.
func (w *world) reset(t testing.TB) {
	t.Helper()
	hcp := hostedControlPlane(func(h *hyperv1.HostedControlPlane) {
		h.Spec.Networking.NetworkType, h.Spec.Networking.AllocateNodeCIDRs = hyperv1.Other, ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
	})
	objects, err := resources.Render(input(hcp))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if _, forever := o.(*corev1.Namespace); forever {
			continue
		}
		if err := w.hosted.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) reconciler(management, hosted client.Client) *Reconciler {
	in := input(w.hcp)
	return &Reconciler{
		Management: management, Hosted: hosted, Clock: clocktesting.NewFakePassiveClock(noon),
		Images: in.Images, TunnelHost: in.Tunnel.Host, TunnelPort: in.Tunnel.Port,
	}
}

// input is what a release with everything gives.
func input(hcp *hyperv1.HostedControlPlane) resources.Input {
	in := resources.Input{HCP: hcp, Images: map[string]string{}, Tunnel: resources.Tunnel{
		Host: "10.244.0.1", Port: 30091, CA: []byte("authority"), Cert: []byte("certificate"), Key: []byte("key"),
	}}
	for _, tag := range images.Tags() {
		in.Images[tag] = "registry.example.com/" + tag + ":1"
	}
	return in
}

func (w *world) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)}
}

func (w *world) condition(t testing.TB) *metav1.Condition {
	t.Helper()
	hcp := &hyperv1.HostedControlPlane{}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), hcp); err != nil {
		t.Fatal(err)
	}
	return conditions.Get(hcp.Status.Conditions, hyperv1.ConfigOperatorReconciliationSucceeded)
}

// check asserts the whole end state.
func (w *world) check(t testing.TB) {
	t.Helper()
	g := NewWithT(t)
	c := w.condition(t)
	g.Expect(c).NotTo(BeNil())
	g.Expect(c.Status).To(Equal(metav1.ConditionTrue))
	g.Expect(c.Reason).To(Equal(hyperv1.AsExpectedReason))
	g.Expect(c.ObservedGeneration).To(Equal(w.hcp.Generation))

	slice := &discoveryv1.EndpointSlice{}
	g.Expect(w.hosted.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, slice)).To(Succeed())
	g.Expect(slice.Endpoints).To(HaveLen(1))
	g.Expect(slice.Endpoints[0].Addresses).To(Equal([]string{"10.97.0.10"}))
	g.Expect(slice.Labels).To(And(HaveKeyWithValue(hyperv1.ManagedLabel, "true"), HaveKeyWithValue(discoveryv1.LabelServiceName, "kubernetes")))
	objects, err := resources.Render(input(w.hcp))
	g.Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		live := o.DeepCopyObject().(client.Object)
		g.Expect(w.hosted.Get(t.Context(), client.ObjectKeyFromObject(o), live)).To(Succeed())
		g.Expect(live.GetLabels()).To(HaveKeyWithValue(hyperv1.ManagedLabel, "true"))
	}
}

func TestReconcile(t *testing.T) {
	t.Run("When the hosted cluster is new it should get every object, and a second pass should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		_, err := w.reconciler(w.client, w.hosted).Reconcile(t.Context(), w.request())
		g.Expect(err).NotTo(HaveOccurred())
		w.check(t)
		testenv.ExpectQuiet(t, w.client, func(c client.WithWatch) error {
			_, err := w.reconciler(c, c).Reconcile(t.Context(), w.request())
			return err
		})
	})
	t.Run("When a tenant changes and deletes objects it should put them back", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		_, err := w.reconciler(w.client, w.hosted).Reconcile(t.Context(), w.request())
		g.Expect(err).NotTo(HaveOccurred())
		endpoints := &corev1.Endpoints{} //nolint:staticcheck // because it is what the operator writes
		g.Expect(w.hosted.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, endpoints)).To(Succeed())
		endpoints.Subsets[0].Addresses[0].IP = "192.0.2.99"
		g.Expect(w.hosted.Update(t.Context(), endpoints)).To(Succeed())
		g.Expect(w.hosted.Delete(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "csr-renewal"}})).To(Succeed())
		_, err = w.reconciler(w.client, w.hosted).Reconcile(t.Context(), w.request())
		g.Expect(err).NotTo(HaveOccurred())
		w.check(t)
		g.Expect(w.hosted.Get(t.Context(), client.ObjectKeyFromObject(endpoints), endpoints)).To(Succeed())
		g.Expect(endpoints.Subsets[0].Addresses[0].IP).To(Equal("10.97.0.10"))
	})
	t.Run("When somebody made a binding with another role before it should replace it", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.hosted.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "node-bootstrapper"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		})).To(Succeed())
		_, err := w.reconciler(w.client, w.hosted).Reconcile(t.Context(), w.request())
		g.Expect(err).NotTo(HaveOccurred())
		w.check(t)
		live := &rbacv1.ClusterRoleBinding{}
		g.Expect(w.hosted.Get(t.Context(), client.ObjectKey{Name: "node-bootstrapper"}, live)).To(Succeed())
		g.Expect(live.RoleRef.Name).To(Equal("system:node-bootstrapper"))
	})
	t.Run("When the control plane is paused it should write nothing at all", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.hcp.Spec.PausedUntil = ptr.To("true")
		g.Expect(w.client.Update(t.Context(), w.hcp)).To(Succeed())
		testenv.ExpectQuiet(t, w.client, func(c client.WithWatch) error {
			_, err := w.reconciler(c, c).Reconcile(t.Context(), w.request())
			return err
		})
		g.Expect(w.condition(t)).To(BeNil())
	})
	t.Run("When the HostedControlPlane is gone it should do nothing", func(t *testing.T) {
		w := newWorld(t)
		NewWithT(t).Expect(w.client.Delete(t.Context(), w.hcp)).To(Succeed())
		testenv.ExpectQuiet(t, w.client, func(c client.WithWatch) error {
			_, err := w.reconciler(c, c).Reconcile(t.Context(), w.request())
			return err
		})
	})
	t.Run("When the hosted API is down it should report that, and heal when it is back", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		ports, err := testenv.FreePorts(1)
		g.Expect(err).NotTo(HaveOccurred())
		dead, err := hostedClient(bounded(&rest.Config{Host: "https://127.0.0.1:" + itoa(ports[0])}), w.hosted.Scheme())
		g.Expect(err).NotTo(HaveOccurred())
		_, err = w.reconciler(w.client, dead).Reconcile(t.Context(), w.request())
		g.Expect(err).To(HaveOccurred())
		c := w.condition(t)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Reason).To(Equal(hyperv1.ReconcileErrorReason))
		g.Expect(c.Message).To(Equal("Nodes: the hosted API doesn't accept connections"))
		testenv.ExpectQuiet(t, w.client, func(m client.WithWatch) error {
			_, err := w.reconciler(m, dead).Reconcile(t.Context(), w.request())
			if err == nil {
				t.Error("want an error while the hosted API is down")
			}
			return nil
		})
		_, err = w.reconciler(w.client, w.hosted).Reconcile(t.Context(), w.request())
		g.Expect(err).NotTo(HaveOccurred())
		w.check(t)
	})
	t.Run("When other controllers own conditions it should leave them alone", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		conditions.Set(&w.hcp.Status.Conditions, noon, metav1.Condition{Type: "Available", Status: metav1.ConditionTrue, Reason: "AsExpected"})
		g.Expect(w.client.Status().Update(t.Context(), w.hcp)).To(Succeed())
		_, err := w.reconciler(w.client, w.hosted).Reconcile(t.Context(), w.request())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp)).To(Succeed())
		g.Expect(conditions.IsTrue(w.hcp.Status.Conditions, "Available")).To(BeTrue())
		g.Expect(conditions.IsTrue(w.hcp.Status.Conditions, hyperv1.ConfigOperatorReconciliationSucceeded)).To(BeTrue())
	})
}

func TestCrash(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		return testenv.CrashCase{
			Client: w.client,
			Run: func(c client.WithWatch) error {
				_, err := w.reconciler(c, c).Reconcile(t.Context(), w.request())
				return err
			},
			Check: w.check,
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}

func TestProcess(t *testing.T) {
	t.Run("When the whole process runs it should put back what a tenant deletes", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		env := testenv.Start(t)
		before := process.RetryPeriod
		process.RetryPeriod = time.Second // the first request for the lease may come before the API server has heard of the RoleBinding
		t.Cleanup(func() { process.RetryPeriod = before })
		mgr, err := newManager(w.asOperator(t, env.Config), bounded(w.asHostedUser(t, env.Config)), Options{
			Namespace: w.hcp.Namespace, Controllers: []string{"*"}, MetricsAddr: "0", HealthAddr: "0", LeaderElect: true,
		})
		g.Expect(err).NotTo(HaveOccurred())
		ended := make(chan error, 1)
		ctx, stop := contextOf(t)
		go func() { ended <- mgr.Start(ctx) }()
		t.Cleanup(func() { stop(); <-ended })

		// Until the control plane operator has made the binding, the hosted API refuses everything.
		g.Eventually(func() string {
			if c := w.condition(t); c != nil {
				return c.Message
			}
			return ""
		}).WithTimeout(30 * time.Second).Should(ContainSubstring("the binding hcco-cluster-admin is missing"))
		w.bindHostedUser(t)
		g.Eventually(func() bool {
			c := w.condition(t)
			return c != nil && c.Status == metav1.ConditionTrue
		}).WithTimeout(30 * time.Second).Should(BeTrue())
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "csr-renewal"}}
		// The watches start after the first pass; a change that comes before them is found when they begin.
		g.Expect(w.hosted.Delete(t.Context(), binding)).To(Succeed())
		g.Eventually(func() bool {
			err := w.hosted.Get(t.Context(), client.ObjectKeyFromObject(binding), binding)
			return !apierrors.IsNotFound(err)
		}).WithTimeout(30 * time.Second).WithPolling(100 * time.Millisecond).Should(BeTrue())
	})
}
