package proxy_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/testenv"
)

// patience is for another program on a machine that is busy with other tests.
const patience = "180s"

// stock finds an unmodified program of Cluster API's module.
func stock(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "capi", "v1.13.4", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no %s at %s: run `make capi` first", name, path) // a skipped test would hide the gap
	}
	return path
}

// life is a cluster whose machines the stock manager manages through the proxy. Everything here but direct sees the standard view.
type life struct {
	*testing.T
	through, direct client.Client
	ns, kubeconfig  string
}

// TestLifecycle runs the stock manager and clusterctl behind the proxy through everything that happens to machines, while the platform's own
// definitions of Cluster API break and vanish.
func TestLifecycle(t *testing.T) {
	l := newLife(t)
	l.startManager()
	go l.provide()
	l.create()
	g := NewWithT(t)
	g.Eventually(l.ready, patience, "250ms").Should(Equal(2), l.describe)
	first := l.machines()

	t.Run("When the cluster is described by clusterctl it should look like any other", func(t *testing.T) {
		g := NewWithT(t)
		out, err := exec.CommandContext(t.Context(), stock(t, "clusterctl"), "describe", "cluster", "demo", "-n", l.ns, "--kubeconfig", l.kubeconfig, "--show-conditions=all").CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		g.Expect(string(out)).To(ContainSubstring("MachineDeployment/workers"))
		g.Expect(string(out)).To(ContainSubstring("LocalCluster/demo"))
		g.Expect(string(out)).NotTo(ContainSubstring(translate.Private))
	})
	t.Run("When it is scaled it should add a machine, and nothing be stored in standard groups", func(t *testing.T) {
		g := NewWithT(t)
		l.patch("workers", &clusterv1.MachineDeployment{}, `{"spec":{"replicas":3}}`)
		g.Eventually(l.ready, patience, "250ms").Should(Equal(3), l.describe)
		g.Expect(l.machines()).To(ContainElements(first))
		g.Expect(l.stored(translate.Private, "Machine")).To(Equal(3))
		g.Expect(l.stored(translate.Standard, "Machine")).To(BeZero())
	})
	t.Run("When the platform's definitions break and vanish it should not be touched", func(t *testing.T) {
		g := NewWithT(t)
		before := l.machines()
		l.breakPlatform(t)
		l.patch("workers", &clusterv1.MachineDeployment{}, `{"spec":{"replicas":4}}`)
		g.Eventually(l.ready, patience, "250ms").Should(Equal(4), l.describe)
		g.Expect(l.machines()).To(ContainElements(before))
	})
	t.Run("When the template changes it should replace every machine", func(t *testing.T) {
		g := NewWithT(t)
		before := l.machines()
		g.Expect(l.through.Create(t.Context(), l.template("second"))).To(Succeed())
		l.patch("workers", &clusterv1.MachineDeployment{}, `{"spec":{"replicas":2,"template":{"spec":{"infrastructureRef":{"name":"second"}}}}}`)
		g.Eventually(func() bool {
			now := l.machines()
			return len(now) == 2 && !slices.ContainsFunc(now, func(name string) bool { return slices.Contains(before, name) }) && l.ready() == 2
		}, patience, "250ms").Should(BeTrue(), l.describe)
	})
	t.Run("When a node stays unhealthy it should replace its machine", func(t *testing.T) {
		g := NewWithT(t)
		sick := l.machines()[0]
		g.Expect(l.through.Create(t.Context(), &clusterv1.MachineHealthCheck{ObjectMeta: l.meta("sick"), Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: "demo", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "workers"}},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: "Sick", Status: corev1.ConditionTrue, TimeoutSeconds: ptr.To[int32](1)}}},
			Remediation: clusterv1.MachineHealthCheckRemediation{TriggerIf: clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyLessThanOrEqualTo: ptr.To(intstr.FromString("100%"))}},
		}})).To(Succeed())
		node := &corev1.Node{}
		g.Expect(l.direct.Get(t.Context(), client.ObjectKey{Name: sick}, node)).To(Succeed())
		before := node.DeepCopy()
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: "Sick", Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))})
		g.Expect(l.direct.Status().Patch(t.Context(), node, client.StrategicMergeFrom(before))).To(Succeed())
		g.Eventually(func() bool { return !slices.Contains(l.machines(), sick) && l.ready() == 2 }, patience, "250ms").Should(BeTrue(), l.describe)
	})
	t.Run("When the cluster is deleted it should leave nothing", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(l.through.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: l.meta("demo")})).To(Succeed())
		g.Eventually(func() int {
			return l.stored(translate.Private, "Cluster") + l.stored(translate.Private, "Machine") + l.stored(translate.Private, "MachineSet") + l.stored("infrastructure."+translate.Private, "LocalMachine")
		}, patience, "250ms").Should(BeZero(), l.describe)
	})
}

func newLife(t *testing.T) *life {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme, apiextensionsv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	proxied := views(t)[1]
	l := &life{T: t, ns: proxied.ns, direct: testenv.Start(t).Client(t, scheme), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	var err error
	l.through, err = client.New(proxied.cfg, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(clientcmd.WriteToFile(*kubeconfigOf(proxied.cfg), l.kubeconfig)).To(Succeed())
	return l
}

// kubeconfigOf is what a pod with the sidecar has: an address, and no credentials.
func kubeconfigOf(cfg *rest.Config) *clientcmdapi.Config {
	conf := clientcmdapi.NewConfig()
	conf.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	conf.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	conf.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	conf.CurrentContext = "x"
	return conf
}

func (l *life) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: l.ns, Name: name}
}

func (l *life) startManager() {
	l.Helper()
	g := NewWithT(l.T)
	dir := l.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)).To(Succeed())
	ports, err := testenv.FreePorts(3)
	g.Expect(err).NotTo(HaveOccurred())
	p, err := testenv.StartProcess(stock(l.T, "capi-manager"), dir, "manager", nil, "--kubeconfig="+l.kubeconfig, "--namespace="+l.ns,
		"--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields", "--feature-gates=MachinePool=false,ClusterTopology=false",
		fmt.Sprintf("--health-addr=127.0.0.1:%d", ports[0]), fmt.Sprintf("--webhook-port=%d", ports[1]), fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", ports[2]),
		"--insecure-diagnostics", "--webhook-cert-dir="+dir, "--v=2")
	g.Expect(err).NotTo(HaveOccurred())
	l.Cleanup(func() {
		if l.Failed() {
			l.Logf("manager: %s", p.Tail())
		}
		p.Kill()
	})
}

func (l *life) template(name string) *infrav1.LocalMachineTemplate {
	t := &infrav1.LocalMachineTemplate{ObjectMeta: l.meta(name)}
	t.Spec.Template.Spec.Image = "registry.example.com/node:" + name
	return t
}

// create makes what a user of Cluster API makes, and marks the control plane as the HostedCluster's controller does.
func (l *life) create() {
	l.Helper()
	g := NewWithT(l.T)
	labels := map[string]string{"pool": "workers", clusterv1.ClusterNameLabel: "demo", clusterv1.MachineDeploymentNameLabel: "workers"}
	workload, err := clientcmd.Write(*kubeconfigOf(testenv.Start(l.T).Config))
	g.Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: l.meta("demo-kubeconfig"), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": workload}}
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: "demo"}
	for _, obj := range []client.Object{
		secret,
		&infrav1.LocalCluster{ObjectMeta: l.meta("demo"), Spec: infrav1.LocalClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "192.0.2.1", Port: 6443}}},
		&clusterv1.Cluster{ObjectMeta: l.meta("demo"), Spec: clusterv1.ClusterSpec{
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: "demo"}}},
		l.template("first"),
		&clusterv1.MachineDeployment{ObjectMeta: l.meta("workers"), Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "demo", Replicas: ptr.To[int32](2), Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: labels}, Spec: clusterv1.MachineSpec{
				ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachineTemplate", Name: "first"},
			}},
			// What the webhooks would write, which nobody registers.
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(1))}}},
		}},
	} {
		g.Expect(l.through.Create(l.Context(), obj)).To(Succeed())
	}
	l.status("demo", &clusterv1.Cluster{}, `{"status":{"initialization":{"controlPlaneInitialized":true},"conditions":[{"type":"ControlPlaneInitialized","status":"True","reason":"Initialized","message":"","lastTransitionTime":"2026-11-21T12:00:00Z"}]}}`)
	l.status("demo", &infrav1.LocalCluster{}, `{"status":{"initialization":{"provisioned":true}}}`)
}

func (l *life) patch(name string, obj client.Object, body string) {
	l.Helper()
	obj.SetNamespace(l.ns)
	obj.SetName(name)
	NewWithT(l.T).Expect(l.through.Patch(l.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body)))).To(Succeed())
}

func (l *life) status(name string, obj client.Object, body string) {
	l.Helper()
	obj.SetNamespace(l.ns)
	obj.SetName(name)
	NewWithT(l.T).Expect(l.through.Status().Patch(l.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body)))).To(Succeed())
}

// provide is an infrastructure provider behind the public contract, and the kubelets: a LocalMachine is a node at once, and gone at once.
func (l *life) provide() {
	ctx := l.Context()
	for ctx.Err() == nil {
		machines := &infrav1.LocalMachineList{}
		_ = l.through.List(ctx, machines, client.InNamespace(l.ns))
		for i := range machines.Items {
			l.boot(ctx, &machines.Items[i])
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *life) boot(ctx context.Context, m *infrav1.LocalMachine) {
	owner := metav1.GetControllerOf(m)
	if owner == nil || owner.APIVersion != clusterv1.GroupVersion.String() || m.Spec.ProviderID != "" || !m.DeletionTimestamp.IsZero() {
		return
	}
	id := "local://" + m.Namespace + "/" + m.Name
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: corev1.NodeSpec{ProviderID: id}}
	if client.IgnoreAlreadyExists(l.direct.Create(ctx, node)) != nil {
		return
	}
	node.Status = corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"}, Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse}}}
	_ = l.direct.Status().Update(ctx, node)
	_ = l.through.Status().Patch(ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"initialization":{"provisioned":true}}}`)))
	_ = l.through.Patch(ctx, m, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"providerID":%q}}`, id)))
}

// machines are the names of Machines that stay, sorted.
func (l *life) machines() []string {
	list := &clusterv1.MachineList{}
	if l.through.List(l.Context(), list, client.InNamespace(l.ns)) != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		if m := &list.Items[i]; m.DeletionTimestamp.IsZero() {
			names = append(names, m.Name)
		}
	}
	return names
}

// ready counts machines with a node, once the deployment has reported as many.
func (l *life) ready() int {
	d := &clusterv1.MachineDeployment{}
	if l.through.Get(l.Context(), client.ObjectKey{Namespace: l.ns, Name: "workers"}, d) != nil || d.Status.ObservedGeneration != d.Generation ||
		ptr.Deref(d.Status.Replicas, 0) != ptr.Deref(d.Status.ReadyReplicas, 0) || ptr.Deref(d.Status.UpToDateReplicas, 0) != ptr.Deref(d.Spec.Replicas, 0) {
		return -1
	}
	return int(ptr.Deref(d.Status.ReadyReplicas, 0))
}

// stored counts objects as they are stored.
func (l *life) stored(group, kind string) int {
	version := "/v1beta2"
	if strings.HasPrefix(group, "infrastructure.") {
		version = "/v1beta1"
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(group + version)
	list.SetKind(kind + "List")
	if err := l.direct.List(l.Context(), list, client.InNamespace(l.ns)); err != nil {
		l.Log(err)
		return -1
	}
	return len(list.Items)
}

func (l *life) describe() string {
	list := &clusterv1.MachineList{}
	_ = l.through.List(l.Context(), list, client.InNamespace(l.ns))
	var out strings.Builder
	for i := range list.Items {
		m := &list.Items[i]
		fmt.Fprintf(&out, "%s %s deleting=%v %+v\n", m.Name, m.Status.Phase, m.DeletionTimestamp != nil, m.Status.Conditions)
	}
	return out.String()
}

// breakPlatform changes the standard definitions so that they serve nothing sensible, then deletes them. They are there again at the end.
func (l *life) breakPlatform(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	for _, name := range []string{"machines." + translate.Standard, "machinedeployments." + translate.Standard, "clusters." + translate.Standard} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(l.direct.Get(t.Context(), client.ObjectKey{Name: name}, crd)).To(Succeed())
		broken := crd.DeepCopy()
		broken.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "string"}}}
		broken.Labels = nil
		g.Expect(l.direct.Update(t.Context(), broken)).To(Succeed())
		g.Expect(l.direct.Delete(t.Context(), broken)).To(Succeed())
		g.Eventually(func() bool {
			return apierrors.IsNotFound(l.direct.Get(t.Context(), client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{}))
		}, patience).Should(BeTrue(), name)
	}
	l.Cleanup(func() {
		crds, err := config.CAPICRDs()
		if err != nil {
			l.Fatal(err)
		}
		testenv.Start(l.T).Install(l.T, crds...)
	})
}
