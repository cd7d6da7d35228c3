package approver

import (
	"context"
	"crypto/x509"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/testenv"
)

// world is one API server that is both clusters.
type world struct {
	env    *testenv.Env
	client ctrlclient.WithWatch
	scheme *runtime.Scheme
	ns     string
	made   []string // names of requests
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{env: testenv.Start(t), scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{
		hyperv1.AddToScheme, clusterv1.AddToScheme, certificatesv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(w.scheme); err != nil {
			t.Fatal(err)
		}
	}
	w.client, w.ns = w.env.Client(t, w.scheme), w.env.Namespace(t)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-node-bootstrapper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: bootstrapUser},
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: nodesGroup},
		},
	}
	if err := w.client.Create(t.Context(), binding); ctrlclient.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "demo"}}
	hcp.Spec.PullSecret.Name, hcp.Spec.InfraID, hcp.Spec.ReleaseImage = "pull-secret", "demo", "registry.example.com/release:1.36.3"
	hcp.Spec.IssuerURL, hcp.Spec.Platform.Type = "https://kubernetes.default.svc", hyperv1.LocalPlatform
	hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}
	hcp.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}
	hcp.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
	for _, s := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		hcp.Spec.Services = append(hcp.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: s, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}})
	}
	if err := w.client.Create(t.Context(), hcp); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, name := range w.made {
			_ = w.client.Delete(context.WithoutCancel(t.Context()), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	})
	return w
}

func (w *world) pass(t testing.TB, c ctrlclient.WithWatch, at time.Time) (ctrl.Result, error) {
	t.Helper()
	r := &Reconciler{
		Management: c, Hosted: c, Clock: clocktesting.NewFakePassiveClock(at),
		Hold:  func(*hyperv1.HostedControlPlane, time.Time) (string, time.Duration) { return "", 0 },
		Watch: func() {},
	}
	return r.Reconcile(t.Context(), ctrl.Request{NamespacedName: ctrlclient.ObjectKey{Namespace: w.ns, Name: "demo"}})
}

// ask makes a request as somebody.
func (w *world) ask(t testing.TB, user string, groups []string, signer string, usages []certificatesv1.KeyUsage, request []byte) string {
	t.Helper()
	cfg := rest.CopyConfig(w.env.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	c, err := ctrlclient.New(cfg, ctrlclient.Options{Scheme: w.scheme})
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Request: request, SignerName: signer, Usages: usages},
	}
	NewWithT(t).Eventually(func() error { // the API server hears of the binding by a watch
		err := c.Create(t.Context(), csr)
		if err != nil && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return err
	}).Should(Succeed())
	w.made = append(w.made, csr.Name)
	return csr.Name
}

func (w *world) askAsBootstrapper(t testing.TB, request []byte) string {
	return w.ask(t, bootstrapUser, []string{bootstrapGroup, "system:serviceaccounts"}, certificatesv1.KubeAPIServerClientKubeletSignerName,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, request)
}

func (w *world) askAsNode(t testing.TB, node string, request []byte) string {
	return w.ask(t, nodePrefix+node, []string{nodesGroup}, certificatesv1.KubeletServingSignerName,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}, request)
}

func (w *world) machine(t testing.TB, name string, addresses ...string) *clusterv1.Machine {
	t.Helper()
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	m.Spec.ClusterName = "demo"
	m.Spec.Bootstrap.DataSecretName = new(string)
	*m.Spec.Bootstrap.DataSecretName = "user-data"
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "LocalMachine", Name: name}
	if err := w.client.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		m.Status.Addresses = append(m.Status.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: a})
	}
	if len(addresses) > 0 {
		if err := w.client.Status().Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// verdict is the condition of a request, as TYPE/REASON.
func (w *world) verdict(t testing.TB, name string) string {
	t.Helper()
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := w.client.Get(t.Context(), ctrlclient.ObjectKey{Name: name}, csr); err != nil {
		t.Fatal(err)
	}
	if len(csr.Status.Conditions) == 0 {
		return ""
	}
	if len(csr.Status.Conditions) > 1 {
		t.Fatalf("%d conditions", len(csr.Status.Conditions))
	}
	return string(csr.Status.Conditions[0].Type) + "/" + csr.Status.Conditions[0].Reason
}

func named(node string, addresses ...string) func(*x509.CertificateRequest) {
	return func(c *x509.CertificateRequest) {
		c.Subject.CommonName = nodePrefix + node
		for _, a := range addresses {
			c.IPAddresses = append(c.IPAddresses, net.ParseIP(a))
		}
	}
}

func TestReconcile(t *testing.T) {
	t.Run("When machines and strangers ask it should approve the machines' requests and record why not the others", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.machine(t, "a-1", "10.244.0.7")
		good := w.askAsBootstrapper(t, requestPEM(t, named("a-1")))
		masters := w.askAsBootstrapper(t, requestPEM(t, named("a-1"), func(c *x509.CertificateRequest) { c.Subject.Organization = []string{"system:masters"} }))
		unknown := w.askAsBootstrapper(t, requestPEM(t, named("a-9")))
		kubelet := w.askAsNode(t, "a-1", requestPEM(t, named("a-1", "10.244.0.7")))
		other := w.askAsNode(t, "a-1", requestPEM(t, named("a-2", "10.244.0.7")))
		foreign := w.askAsNode(t, "a-1", requestPEM(t, named("a-1", "172.31.0.1")))
		stranger := w.ask(t, "eve", []string{"system:masters"}, certificatesv1.KubeAPIServerClientKubeletSignerName,
			[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, requestPEM(t, named("a-1")))

		result, err := w.pass(t, w.client, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(recheck))
		g.Expect(w.verdict(t, good)).To(Equal("Approved/" + ReasonMachineMatches))
		g.Expect(w.verdict(t, masters)).To(Equal("Denied/" + ReasonSubject))
		g.Expect(w.verdict(t, kubelet)).To(Equal("Approved/" + ReasonMachineMatches))
		g.Expect(w.verdict(t, other)).To(Equal("Denied/" + ReasonSubject))
		for name, reason := range map[string]string{unknown: ReasonMachineNotFound, foreign: ReasonNames, stranger: ReasonRequestor} {
			g.Expect(w.verdict(t, name)).To(BeEmpty())
			events := &corev1.EventList{}
			g.Expect(w.client.List(t.Context(), events, ctrlclient.InNamespace("default"), ctrlclient.MatchingFields{"involvedObject.name": name})).To(Succeed())
			g.Expect(events.Items).To(HaveLen(1))
			g.Expect(events.Items[0].Reason).To(Equal(reason))
		}
		testenv.ExpectQuiet(t, w.client, func(c ctrlclient.WithWatch) error {
			_, err := w.pass(t, c, time.Now())
			return err
		})
		result, err = w.pass(t, w.client, time.Now().Add(time.Hour))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(slowRecheck))
		for _, name := range []string{unknown, foreign, stranger} {
			g.Expect(w.verdict(t, name)).To(BeEmpty(), "a person may still approve it")
		}
	})
	t.Run("When the Node exists already it should approve no first certificate", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.machine(t, "b-1", "10.244.0.8")
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b-1"}}
		g.Expect(w.client.Create(t.Context(), node)).To(Succeed())
		t.Cleanup(func() { _ = w.client.Delete(t.Context(), node) })
		name := w.askAsBootstrapper(t, requestPEM(t, named("b-1")))
		_, err := w.pass(t, w.client, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.verdict(t, name)).To(BeEmpty())
	})
	t.Run("When a Machine of another control plane has the name it should wait", func(t *testing.T) {
		g := NewWithT(t)
		w, elsewhere := newWorld(t), newWorld(t)
		elsewhere.machine(t, "c-1", "10.244.0.9")
		name := w.askAsBootstrapper(t, requestPEM(t, named("c-1")))
		_, err := w.pass(t, w.client, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.verdict(t, name)).To(BeEmpty())
	})
	t.Run("When addresses come late it should approve then", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		m := w.machine(t, "d-1")
		name := w.askAsNode(t, "d-1", requestPEM(t, named("d-1", "10.244.0.10")))
		_, err := w.pass(t, w.client, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.verdict(t, name)).To(BeEmpty())
		m.Status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "10.244.0.10"}}
		g.Expect(w.client.Status().Update(t.Context(), m)).To(Succeed())
		_, err = w.pass(t, w.client, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.verdict(t, name)).To(Equal("Approved/" + ReasonMachineMatches))
	})
}

func TestCrash(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		w.machine(t, "e-1", "10.244.0.11")
		good := w.askAsBootstrapper(t, requestPEM(t, named("e-1")))
		bad := w.askAsBootstrapper(t, requestPEM(t, named("e-1"), func(c *x509.CertificateRequest) { c.DNSNames = []string{"x"} }))
		unknown := w.askAsBootstrapper(t, requestPEM(t, named("e-9")))
		return testenv.CrashCase{
			Client: w.client,
			Run: func(c ctrlclient.WithWatch) error {
				_, err := w.pass(t, c, time.Now())
				return err
			},
			Check: func(t testing.TB) {
				g := NewWithT(t)
				g.Expect(w.verdict(t, good)).To(Equal("Approved/" + ReasonMachineMatches))
				g.Expect(w.verdict(t, bad)).To(Equal("Denied/" + ReasonNames))
				g.Expect(w.verdict(t, unknown)).To(BeEmpty())
			},
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}
