package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/platform"
	platformmachine "hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/test/machinepods"
	"hcp.internal/platform/test/objects"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// stage is a hosted cluster of platform Agent as the operators write it, with hosts in a namespace of their own. admin may do anything, provider what the
// operators let the provider do.
type stage struct {
	testing.TB
	admin    client.WithWatch
	provider client.WithWatch
	hc       *hyperv1.HostedCluster
	pool     *hyperv1.NodePool
	platform platform.Platform
	ns       string
	hosts    Hosts
}

func newStage(t testing.TB, names ...string) *stage {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	crd, err := CRD()
	g.Expect(err).NotTo(HaveOccurred())
	crds, err := config.ProviderCRDs("agent", false)
	g.Expect(err).NotTo(HaveOccurred())
	env.Install(t, append(crds, crd)...)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	s := &stage{TB: t, admin: env.Client(t, scheme)}
	s.platform, err = platform.For(hyperv1.AgentPlatform)
	g.Expect(err).NotTo(HaveOccurred())
	hosts, pods := env.Namespace(t), env.Namespace(t)
	s.hosts = Hosts{Client: s.admin, Namespace: hosts, Pods: machinepods.Pods{Client: s.admin, Namespace: pods, Image: "r/node:1"}}
	s.makeCluster(hosts)
	restricted := rest.CopyConfig(env.Config)
	restricted.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + s.ns + ":capi-provider"}
	s.provider, err = client.NewWithWatch(restricted, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range names {
		host, size, _ := strings.Cut(name, "=")
		g.Expect(s.hosts.Register(t.Context(), host, map[string]string{"size": size})).To(Succeed())
	}
	g.Expect(s.hosts.Pass(t.Context())).To(Succeed())
	// The API server learns of Roles and RoleBindings a moment after it has taken them, and of each namespace's by itself.
	for ns, kind := range map[string]schema.GroupVersionKind{s.ns: machineKind, hosts: HostKind} {
		g.Eventually(func() error {
			_, err := objects.List(t.Context(), s.provider, kind, ns)
			return err
		}, time.Minute).Should(Succeed())
	}
	return s
}

// makeCluster writes what the hypershift-operator does: namespace, rights and AgentCluster.
func (s *stage) makeCluster(agentNamespace string) {
	s.Helper()
	g := NewWithT(s.TB)
	ctx := s.Context()
	s.hc = &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: agentNamespace}}
	s.hc.Spec.InfraID = agentNamespace
	s.hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AgentPlatform, Agent: &hyperv1.AgentPlatformSpec{AgentNamespace: agentNamespace}}
	s.hc.Status.IgnitionEndpoint = "ignition.example.com"
	s.ns = names.NamespaceOf(s.hc)
	g.Expect(s.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}})).To(Succeed())
	g.Expect(s.admin.Create(ctx, &corev1.Secret{ObjectMeta: s.meta("ignition-server-ca-cert"), Data: map[string][]byte{"tls.crt": []byte("authority")}})).To(Succeed())
	rights, err := s.platform.Credentials(ctx, s.admin, s.hc, s.ns)
	g.Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.Role{}
	raw, err := os.ReadFile(filepath.Join("..", "..", "internal", "controlplane", "capiprovider", "assets", "role.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.UnmarshalStrict(raw, role)).To(Succeed())
	role.Namespace, role.Rules = s.ns, append(role.Rules, s.platform.CAPIProviderPolicyRules()...)
	for _, obj := range append(rights, role, &rbacv1.RoleBinding{ObjectMeta: s.meta("capi-provider"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.ns, Name: names.CAPIProvider}}}) {
		g.Expect(s.admin.Create(ctx, obj)).To(Succeed())
	}
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}
	cluster, err := capi.Infrastructure(s.platform, s.hc, hcp)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.admin.Create(ctx, cluster)).To(Succeed())
	s.pool = &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers"}}
	s.pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.AgentPlatform, Agent: &hyperv1.AgentNodePoolPlatform{
		AgentLabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"size": "large"}}}}
	data, err := token.UserData{Namespace: s.ns, Pool: "workers", Hash: "0123", PoolKey: "clusters/workers", Endpoint: "ignition.example.com", CA: []byte("authority"), Token: "secret"}.Secret()
	g.Expect(err).NotTo(HaveOccurred())
	data.Name = "user-data"
	g.Expect(s.admin.Create(ctx, data)).To(Succeed())
}

func (s *stage) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.ns, Name: name}
}

// addMachine writes what Cluster API makes of the pool's template.
func (s *stage) addMachine(name string) {
	s.Helper()
	g := NewWithT(s.TB)
	template, err := s.platform.MachineTemplate(platformmachine.Input{HostedCluster: s.hc, NodePool: s.pool})
	g.Expect(err).NotTo(HaveOccurred())
	spec, _, err := unstructured.NestedMap(template.Object.(*unstructured.Unstructured).Object, "spec", "template", "spec")
	g.Expect(err).NotTo(HaveOccurred())
	m := &clusterv1.Machine{ObjectMeta: s.meta(name), Spec: clusterv1.MachineSpec{ClusterName: s.hc.Name, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: machineKind.Group, Kind: machineKind.Kind, Name: name}}}
	g.Expect(s.admin.Create(s.Context(), m)).To(Succeed())
	u := s.object(name)
	u.Object["spec"] = spec
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: m.UID}})
	g.Expect(s.admin.Create(s.Context(), u)).To(Succeed())
}

func (s *stage) object(name string) *unstructured.Unstructured {
	return objects.New(machineKind, s.ns, name)
}

// settle plays both stand-ins until both have nothing more to do. There is no kubelet: pods run as soon as there are any.
func (s *stage) settle(provider, admin client.WithWatch) error {
	p := Provider{Client: provider, Namespace: s.ns, AgentNamespace: s.hosts.Namespace}
	h := s.hosts
	h.Client, h.Pods.Client = admin, admin
	for range 5 {
		if err := p.Pass(s.Context()); err != nil {
			return err
		}
		if err := h.Pass(s.Context()); err != nil {
			return err
		}
		s.runPods()
	}
	return nil
}

func (s *stage) runPods() {
	g := NewWithT(s.TB)
	pods := &corev1.PodList{}
	g.Expect(s.admin.List(s.Context(), pods, client.InNamespace(s.hosts.Pods.Namespace))).To(Succeed())
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase != corev1.PodRunning {
			p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "10.0.0.7", []corev1.PodIP{{IP: "10.0.0.7"}}
			g.Expect(s.admin.Status().Update(s.Context(), p)).To(Succeed())
		}
	}
}

// look reads an AgentMachine.
func (s *stage) look(name string) *agentMachine {
	s.Helper()
	u, m := s.object(name), &agentMachine{}
	NewWithT(s.TB).Expect(s.admin.Get(s.Context(), client.ObjectKeyFromObject(u), u)).To(Succeed())
	NewWithT(s.TB).Expect(objects.Decode(u, m)).To(Succeed())
	return m
}

func (s *stage) bound() (bound, free []string) {
	s.Helper()
	bound, free, err := s.hosts.Bound(s.Context())
	NewWithT(s.TB).Expect(err).NotTo(HaveOccurred())
	return bound, free
}

func TestAgents(t *testing.T) {
	s := newStage(t, "host-a=small", "host-b=large", "host-c=large")
	g := NewWithT(t)
	s.addMachine("one")
	s.addMachine("two")
	g.Expect(s.settle(s.provider, s.admin)).To(Succeed())

	t.Run("When two machines ask for large hosts they should get them, and the third host stay free", func(t *testing.T) {
		g := NewWithT(t)
		bound, free := s.bound()
		g.Expect(bound).To(Equal([]string{"host-b", "host-c"}))
		g.Expect(free).To(Equal([]string{"host-a"}))
		var ids []string
		for _, name := range []string{"one", "two"} {
			m := s.look(name)
			g.Expect(m.Status.Ready).To(BeTrue())
			g.Expect(m.Status.Addresses).To(ContainElement(address{Type: "InternalIP", Address: "10.0.0.7"}))
			g.Expect(m.Spec.ProviderID).To(Equal("agent://" + m.Status.AgentRef.Name))
			ids = append(ids, m.Spec.ProviderID)
		}
		slices.Sort(ids)
		g.Expect(ids).To(Equal([]string{"agent://host-b", "agent://host-c"}))
	})
	t.Run("When a host boots it should be led by the AgentCluster, with the token of its machine's user data", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{}
		g.Expect(s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.hosts.Pods.Namespace, Name: "host-b"}, secret)).To(Succeed())
		var of, want any
		g.Expect(json.Unmarshal(secret.Data["value"], &of)).To(Succeed())
		given := &corev1.Secret{}
		g.Expect(s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "user-data"}, given)).To(Succeed())
		g.Expect(json.Unmarshal(given.Data["value"], &want)).To(Succeed())
		g.Expect(of).To(Equal(want))
	})
	t.Run("When nothing changes nothing should be written", func(t *testing.T) {
		testenv.ExpectQuiet(t, s.provider, func(provider client.WithWatch) error { return s.settle(provider, s.admin) })
		testenv.ExpectQuiet(t, s.admin, func(admin client.WithWatch) error { return s.settle(s.provider, admin) })
	})
	t.Run("When there is no third large host the third machine should say so", func(t *testing.T) {
		g := NewWithT(t)
		s.addMachine("three")
		g.Expect(s.settle(s.provider, s.admin)).To(Succeed())
		c := conditions.Get(s.look("three").Status.Conditions, reserved)
		g.Expect(c).To(HaveField("Reason", noSuitable))
		g.Expect(c.Message).To(ContainSubstring("size=large"))
	})
	t.Run("When a machine goes its host should be wiped and become another's", func(t *testing.T) {
		g := NewWithT(t)
		was := s.look("one").Status.AgentRef.Name
		g.Expect(s.admin.Delete(t.Context(), s.object("one"))).To(Succeed())
		g.Expect(s.settle(s.provider, s.admin)).To(Succeed())
		g.Expect(s.settle(s.provider, s.admin)).To(Succeed())
		g.Expect(s.look("three").Status.AgentRef.Name).To(Equal(was))
		g.Expect(client.IgnoreNotFound(s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "one"}, s.object("one")))).To(Succeed())
	})
	t.Run("When the cluster is deleted all hosts should be free, and no right be left", func(t *testing.T) {
		g := NewWithT(t)
		for _, name := range []string{"two", "three"} {
			g.Expect(s.admin.Delete(t.Context(), s.object(name))).To(Succeed())
		}
		g.Expect(s.settle(s.provider, s.admin)).To(Succeed())
		bound, free := s.bound()
		g.Expect(bound).To(BeEmpty())
		g.Expect(free).To(HaveLen(3))
		g.Expect(s.platform.DeleteCredentials(t.Context(), s.admin, s.hc, s.ns)).To(Succeed())
		for _, l := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
			g.Expect(s.admin.List(t.Context(), l, client.InNamespace(s.hosts.Namespace))).To(Succeed())
			raw, err := json.Marshal(l)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(raw)).NotTo(ContainSubstring("capi-provider"))
		}
	})
}

// TestCrashes interrupts the provider at each write, from no machine to one that runs to none.
func TestCrashes(t *testing.T) {
	for name, end := range map[string]func(*stage){
		"to a machine that runs": func(*stage) {},
		"to none again": func(s *stage) {
			g := NewWithT(s.TB)
			g.Expect(s.settle(s.provider, s.admin)).To(Succeed())
			g.Expect(s.admin.Delete(context.Background(), s.object("one"))).To(Succeed())
		},
	} {
		t.Run("When the way is "+name+" it should be safe to die on it", func(t *testing.T) {
			testenv.CrashAtEveryWrite(t, 2, func(t testing.TB) testenv.CrashCase {
				s := newStage(t, "host-a=large", "host-b=large")
				s.addMachine("one")
				end(s)
				return testenv.CrashCase{
					Client: s.provider,
					Run:    func(c client.WithWatch) error { return s.settle(c, s.admin) },
					Check: func(t testing.TB) {
						bound, free := s.bound()
						if name == "to none again" {
							NewWithT(t).Expect(free).To(HaveLen(2), fmt.Sprint(bound))
							return
						}
						NewWithT(t).Expect(bound).To(HaveLen(1))
						NewWithT(t).Expect(s.look("one").Status.Ready).To(BeTrue())
					},
				}
			})
		})
	}
}
