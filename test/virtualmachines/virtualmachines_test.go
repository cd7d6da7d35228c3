package virtualmachines

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/platform"
	platformmachine "hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/test/machinepods"
	"hcp.internal/platform/test/objects"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// stage is a hosted cluster of platform KubeVirt as the operators write it. admin may do anything, provider what the operators let the provider do.
type stage struct {
	testing.TB
	admin, provider client.WithWatch
	hc              *hyperv1.HostedCluster
	pool            *hyperv1.NodePool
	platform        platform.Platform
	ns, vms, pods   string
}

// newStage makes one; its virtual machines are in another cluster, which is the same, if other is true.
func newStage(t testing.TB, other bool) *stage {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	crds, err := CRDs()
	g.Expect(err).NotTo(HaveOccurred())
	more, err := config.ProviderCRDs("kubevirt", false)
	g.Expect(err).NotTo(HaveOccurred())
	env.Install(t, append(crds, more...)...)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	s := &stage{TB: t, admin: env.Client(t, scheme), pods: env.Namespace(t)}
	s.platform, err = platform.For(hyperv1.KubevirtPlatform)
	g.Expect(err).NotTo(HaveOccurred())
	s.hc = &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "vms"}}
	s.hc.Spec.InfraID = "vms"
	s.hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform, Kubevirt: &hyperv1.KubevirtPlatformSpec{}}
	s.ns = names.NamespaceOf(s.hc)
	s.vms = s.ns
	g.Expect(s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}})).To(Succeed())
	if other {
		s.vms = env.Namespace(t)
		s.hc.Spec.Platform.Kubevirt.Credentials = &hyperv1.KubevirtPlatformCredentials{InfraNamespace: s.vms, InfraKubeConfigSecret: &hyperv1.KubeconfigSecretRef{Name: "other", Key: "kubeconfig"}}
		g.Expect(s.admin.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.hc.Namespace, Name: "other"}, Data: map[string][]byte{"kubeconfig": env.Kubeconfig(t)}})).To(Succeed())
	}
	s.makeCluster()
	restricted := rest.CopyConfig(env.Config)
	restricted.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + s.ns + ":capi-provider"}
	s.provider, err = client.NewWithWatch(restricted, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	// A kind that is new is kept in memory from its first list on. Until that is done requests are refused, which the platform tells, and the admin's client repeats.
	_, err = objects.List(t.Context(), s.admin, DataVolumeKind, s.vms)
	g.Expect(err).NotTo(HaveOccurred())
	// The API server learns of the Role and its RoleBinding a moment after it has taken them.
	g.Eventually(func() error {
		_, err := objects.List(t.Context(), s.provider, machineKind, s.ns)
		return err
	}, time.Minute).Should(Succeed())
	return s
}

// makeCluster writes what the hypershift-operator does.
func (s *stage) makeCluster() {
	s.Helper()
	g := NewWithT(s.TB)
	ctx := s.Context()
	role := &rbacv1.Role{}
	raw, err := os.ReadFile(filepath.Join("..", "..", "internal", "controlplane", "capiprovider", "assets", "role.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.UnmarshalStrict(raw, role)).To(Succeed())
	role.Namespace, role.Rules = s.ns, append(role.Rules, s.platform.CAPIProviderPolicyRules()...)
	written, err := s.platform.Credentials(ctx, s.admin, s.hc, s.ns)
	g.Expect(err).NotTo(HaveOccurred())
	infrastructure, err := capi.Infrastructure(s.platform, s.hc, &hyperv1.HostedControlPlane{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, obj := range append(written, infrastructure, role, &rbacv1.RoleBinding{ObjectMeta: s.meta("capi-provider"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.ns, Name: names.CAPIProvider}}},
		&corev1.Secret{ObjectMeta: s.meta("user-data"), Data: map[string][]byte{"value": []byte(`{"ignition":{"version":"3.2.0"}}`)}}) {
		g.Expect(s.admin.Create(ctx, obj)).To(Succeed())
	}
	s.pool = &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: s.hc.Namespace, Name: "workers"}}
	s.pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.KubevirtPlatform, Kubevirt: everyField()}
}

// everyField is a pool with all that a virtual machine can be told.
func everyField() *hyperv1.KubevirtNodePoolPlatform {
	return &hyperv1.KubevirtNodePoolPlatform{
		Compute: &hyperv1.KubevirtCompute{Cores: ptr.To[int32](2), Memory: ptr.To(resource.MustParse("4Gi")), QosClass: ptr.To(hyperv1.QoSClassGuaranteed)},
		RootVolume: &hyperv1.KubevirtRootVolume{
			Image: &hyperv1.KubevirtDiskImage{ContainerDiskImage: ptr.To("registry.example.com/disk:1")},
			KubevirtVolume: hyperv1.KubevirtVolume{Type: hyperv1.KubevirtVolumeTypePersistent, Persistent: &hyperv1.KubevirtPersistentVolume{
				Size: ptr.To(resource.MustParse("32Gi")), StorageClass: ptr.To("fast"), AccessModes: []hyperv1.PersistentVolumeAccessMode{"ReadWriteMany"}, VolumeMode: ptr.To(corev1.PersistentVolumeBlock)}},
		},
		NetworkInterfaceMultiQueue: ptr.To(hyperv1.MultiQueueEnable), AdditionalNetworks: []hyperv1.KubevirtNetwork{{Name: "vms/blue"}},
		NodeSelector: map[string]string{"disk": "ssd"}, KubevirtHostDevices: []hyperv1.KubevirtHostDevice{{DeviceName: "example.com/gpu", Count: 2}},
	}
}

func (s *stage) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.ns, Name: name}
}

// addMachine writes what Cluster API makes of the pool's template.
func (s *stage) addMachine(name string) (spec map[string]any) {
	s.Helper()
	g := NewWithT(s.TB)
	template, err := s.platform.MachineTemplate(platformmachine.Input{HostedCluster: s.hc, NodePool: s.pool})
	g.Expect(err).NotTo(HaveOccurred())
	spec, _, err = unstructured.NestedMap(template.Object.(*unstructured.Unstructured).Object, "spec", "template", "spec")
	g.Expect(err).NotTo(HaveOccurred())
	m := &clusterv1.Machine{ObjectMeta: s.meta(name), Spec: clusterv1.MachineSpec{ClusterName: "vms", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: machineKind.Group, Kind: machineKind.Kind, Name: name}}}
	g.Expect(s.admin.Create(s.Context(), m)).To(Succeed())
	u := objects.New(machineKind, s.ns, name)
	u.Object["spec"] = spec
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: m.UID}})
	g.Expect(s.admin.Create(s.Context(), u)).To(Succeed())
	return spec
}

// settle plays both stand-ins until both have nothing more to do. There is no kubelet: pods run as soon as there are any.
func (s *stage) settle(provider, admin client.WithWatch) error {
	p := Provider{Client: provider, Namespace: s.ns}
	v := Virt{Client: admin, Namespace: s.vms, Pods: machinepods.Pods{Client: admin, Namespace: s.pods, Image: "r/node:1"}}
	for range 8 {
		if err := p.Pass(s.Context()); err != nil {
			return err
		}
		if err := v.Pass(s.Context()); err != nil {
			return err
		}
		s.runPods()
	}
	return nil
}

func (s *stage) runPods() {
	g := NewWithT(s.TB)
	pods := &corev1.PodList{}
	g.Expect(s.admin.List(s.Context(), pods, client.InNamespace(s.pods))).To(Succeed())
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase != corev1.PodRunning {
			p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "10.0.0.7", []corev1.PodIP{{IP: "10.0.0.7"}}
			g.Expect(s.admin.Status().Update(s.Context(), p)).To(Succeed())
		}
	}
}

func (s *stage) look(name string) *kubevirtMachine {
	s.Helper()
	u, m := objects.New(machineKind, s.ns, name), &kubevirtMachine{}
	NewWithT(s.TB).Expect(s.admin.Get(s.Context(), client.ObjectKeyFromObject(u), u)).To(Succeed())
	NewWithT(s.TB).Expect(objects.Decode(u, m)).To(Succeed())
	return m
}

// left are the objects of virtual machines that there are where they run.
func (s *stage) left() (all []string) {
	s.Helper()
	for _, kind := range []schema.GroupVersionKind{VMKind, VMIKind, DataVolumeKind} {
		items, err := objects.List(context.Background(), s.admin, kind, s.vms)
		NewWithT(s.TB).Expect(err).NotTo(HaveOccurred())
		for _, i := range items {
			all = append(all, i.GetKind()+" "+i.GetName())
		}
	}
	return all
}

func TestVirtualMachines(t *testing.T) {
	for name, other := range map[string]bool{"in the management cluster": false, "in a cluster that a kubeconfig leads to": true} {
		t.Run("When virtual machines are "+name, func(t *testing.T) { lifeOfMachines(t, other) })
	}
}

func lifeOfMachines(t *testing.T, other bool) {
	s := newStage(t, other)
	g := NewWithT(t)
	spec := s.addMachine("one")
	g.Expect(s.settle(s.provider, s.admin)).To(Succeed())

	t.Run("it should run with an address and the provider's ID", func(t *testing.T) {
		g := NewWithT(t)
		m := s.look("one")
		g.Expect(m.Status.Ready).To(BeTrue())
		g.Expect(m.Spec.ProviderID).To(Equal("kubevirt://one"))
		g.Expect(m.Status.Addresses).To(ContainElement(address{Type: "InternalIP", Address: "10.0.0.7"}))
		g.Expect(m.Status.Conditions).To(ContainElement(And(HaveField("Type", migratable), HaveField("Status", metav1.ConditionTrue))))
		secret := &corev1.Secret{}
		g.Expect(s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.pods, Name: "one"}, secret)).To(Succeed())
		g.Expect(string(secret.Data["value"])).To(Equal(`{"ignition":{"version":"3.2.0"}}`))
	})
	t.Run("it should be as the template says, with no field that KubeVirt doesn't know", func(t *testing.T) {
		g := NewWithT(t)
		vm := objects.New(VMKind, s.vms, "one")
		g.Expect(s.admin.Get(t.Context(), client.ObjectKeyFromObject(vm), vm)).To(Succeed())
		m := &kubevirtMachine{}
		m.Name = "one"
		template, _, err := unstructured.NestedMap(spec, "virtualMachineTemplate", "spec")
		g.Expect(err).NotTo(HaveOccurred())
		m.Spec.Template.Spec = template
		want, err := virtualMachineSpec(m)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(text(g, vm.Object["spec"])).To(Equal(text(g, want)))
		g.Expect(vm.GetLabels()).To(HaveKeyWithValue(hyperv1.InfraIDLabel, "vms"))
		g.Expect(s.left()).To(ConsistOf("VirtualMachine one", "VirtualMachineInstance one", "DataVolume one-rhcos"))
	})
	t.Run("it should write nothing when nothing changes", func(t *testing.T) {
		testenv.ExpectQuiet(t, s.provider, func(provider client.WithWatch) error { return s.settle(provider, s.admin) })
		testenv.ExpectQuiet(t, s.admin, func(admin client.WithWatch) error { return s.settle(s.provider, admin) })
	})
	t.Run("it should leave nothing when it is deleted", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(s.admin.Delete(t.Context(), objects.New(machineKind, s.ns, "one"))).To(Succeed())
		g.Expect(s.settle(s.provider, s.admin)).To(Succeed())
		g.Expect(s.left()).To(BeEmpty())
		secrets := &corev1.SecretList{}
		g.Expect(s.admin.List(t.Context(), secrets, client.InNamespace(s.vms), client.HasLabels{hyperv1.InfraIDLabel})).To(Succeed())
		g.Expect(secrets.Items).To(BeEmpty())
	})
}

// text is a value as people read it, in which a difference is found.
func text(g Gomega, value any) string {
	raw, err := yaml.Marshal(value)
	g.Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// TestCrashes interrupts the provider at each write, from no machine to one that runs and to none again.
func TestCrashes(t *testing.T) {
	testenv.CrashAtEveryWrite(t, 1, func(t testing.TB) testenv.CrashCase {
		s := newStage(t, false)
		s.addMachine("one")
		return testenv.CrashCase{
			Client: s.provider,
			Run:    func(c client.WithWatch) error { return s.settle(c, s.admin) },
			Check: func(t testing.TB) {
				NewWithT(t).Expect(s.look("one").Status.Ready).To(BeTrue())
				NewWithT(t).Expect(s.left()).To(ConsistOf("VirtualMachine one", "VirtualMachineInstance one", "DataVolume one-rhcos"))
			},
		}
	})
}
