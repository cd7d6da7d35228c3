package nodepool

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/testenv"
)

// stockManager is where the build puts the stock manager; CAPI_MANAGER names another place.
func stockManager(t testing.TB) string {
	path := os.Getenv("CAPI_MANAGER")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "capi", "v1.13.4", "capi-manager")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no Cluster API manager at %s: run `make capi` first, or set CAPI_MANAGER", path) // a skipped test would hide the gap
	}
	return path
}

// startStock runs the stock manager on the control plane's namespace, a provider whose machines are nodes at once, and an ignition server
// that likes every configuration. most is the highest number of machines that there were at a time.
func (w *world) startStock(t testing.TB, manager string) (most *atomic.Int32) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	dir := t.TempDir()
	ports, err := testenv.FreePorts(3)
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig := w.env.Kubeconfig(t)
	g.Expect(os.WriteFile(filepath.Join(dir, "kubeconfig"), kubeconfig, 0o600)).To(Succeed())
	writeCertificate(t, dir)
	p, err := testenv.StartProcess(manager, dir, "manager", nil, "--kubeconfig=kubeconfig", "--namespace="+w.hcpNS, "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
		"--feature-gates=MachinePool=false,ClusterTopology=false", fmt.Sprintf("--health-addr=127.0.0.1:%d", ports[0]), fmt.Sprintf("--webhook-port=%d", ports[1]),
		fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", ports[2]), "--insecure-diagnostics", "--webhook-cert-dir="+dir, "--v=2")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("manager: %s", p.Tail())
		}
		p.Kill()
	})
	for _, obj := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcpNS, Name: "demo-abcde-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo-abcde"}},
			Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig}},
		&infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcpNS, Name: "demo"}, Spec: infrav1.LocalClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "192.0.2.1", Port: 6443}}},
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcpNS, Name: "demo-abcde"}, Spec: clusterv1.ClusterSpec{
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: "demo"}}},
	} {
		g.Expect(w.client.Create(ctx, obj)).To(Succeed())
	}
	// As the HostedCluster's controller marks it.
	body := []byte(`{"status":{"initialization":{"controlPlaneInitialized":true},"conditions":[{"type":"ControlPlaneInitialized","status":"True","reason":"Initialized","message":"","lastTransitionTime":"2026-11-21T12:00:00Z"}]}}`)
	g.Expect(w.client.Status().Patch(ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcpNS, Name: "demo-abcde"}}, client.RawPatch("application/merge-patch+json", body))).To(Succeed())
	g.Expect(w.client.Status().Patch(ctx, &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcpNS, Name: "demo"}},
		client.RawPatch("application/merge-patch+json", []byte(`{"status":{"initialization":{"provisioned":true}}}`)))).To(Succeed())
	t.Cleanup(func() { w.logOnFailure(t) })
	most = &atomic.Int32{}
	go w.playOthers(ctx, most)
	return most
}

// playOthers is the provider, the kubelets and the ignition server.
func (w *world) playOthers(ctx context.Context, most *atomic.Int32) {
	for ctx.Err() == nil {
		machines, secrets := &infrav1.LocalMachineList{}, &corev1.SecretList{}
		if w.client.List(ctx, machines, client.InNamespace(w.hcpNS)) == nil && int32(len(machines.Items)) > most.Load() {
			most.Store(int32(len(machines.Items)))
		}
		for i := range machines.Items {
			w.boot(ctx, &machines.Items[i])
		}
		_ = w.client.List(ctx, secrets, client.InNamespace(w.hcpNS), client.MatchingLabels(ownLabels()))
		for i := range secrets.Items {
			if s := &secrets.Items[i]; s.Annotations[hyperv1.TokenSecretAnnotation] == "true" && len(s.Data[token.ReasonKey]) == 0 {
				body := []byte(`{"metadata":{"annotations":{"hypershift.openshift.io/ignition-reached":"True"}},"stringData":{"reason":"AsExpected"}}`)
				_ = w.client.Patch(ctx, s, client.RawPatch("application/merge-patch+json", body))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// boot makes a machine a node. A step that fails is made again in the next round, so what says that all are done is written last: the status
// behind the provider's ID, for Cluster API asks a machine that is provisioned for its ID.
func (w *world) boot(ctx context.Context, m *infrav1.LocalMachine) {
	if ptr.Deref(m.Status.Initialization.Provisioned, false) || !m.DeletionTimestamp.IsZero() {
		return
	}
	id := "local://" + m.Namespace + "/" + m.Name
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: corev1.NodeSpec{ProviderID: id}}
	err := w.client.Create(ctx, node)
	if apierrors.IsAlreadyExists(err) {
		err = w.client.Get(ctx, client.ObjectKeyFromObject(node), node)
	}
	if err != nil {
		return
	}
	node.Status = corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"}, Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse}}}
	if w.client.Status().Update(ctx, node) != nil {
		return
	}
	if w.client.Patch(ctx, m, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"providerID":%q}}`, id))) != nil {
		return
	}
	_ = w.client.Status().Patch(ctx, m, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"initialization":{"provisioned":true}}}`)))
}

func writeCertificate(t testing.TB, dir string) {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalPKCS8PrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)).To(Succeed())
}

// stockPatience is longer than patience: each step is several controllers', and Cluster API looks at some things every 15 s only.
const stockPatience = 4 * time.Minute

func TestStockClusterAPI(t *testing.T) {
	t.Run("When stock Cluster API makes the machines it should become ready, roll, go back without churn, scale and go", func(t *testing.T) {
		manager := stockManager(t)
		w := newWorld(t)
		most := w.startStock(t, manager)
		w.start(t)
		g := NewWithT(t)
		ctx := t.Context()
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "tuning"}, Data: map[string]string{configKey: machineConfig("/etc/motd", "data:,a")}}
		g.Expect(w.client.Create(ctx, config)).To(Succeed())
		begin := time.Now()
		g.Expect(w.client.Create(ctx, examplePool(w.ns, func(np *hyperv1.NodePool) {
			np.Spec.Config, np.Spec.Management.AutoRepair = []corev1.LocalObjectReference{{Name: "tuning"}}, true
		}))).To(Succeed())
		steady := func(replicas int32) func(Gomega) {
			return func(g Gomega) {
				np := w.pool(t)
				g.Expect(np.Status.Replicas).To(Equal(replicas))
				g.Expect(np.Status.Version).To(Equal("1.36.3"))
				for _, c := range []string{hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType, hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType} {
					g.Expect(w.condition(t, c)).To(Equal("False/AsExpected"), c)
				}
				for _, c := range []string{hyperv1.NodePoolReadyConditionType, hyperv1.NodePoolAllMachinesReadyConditionType, hyperv1.NodePoolAllNodesHealthyConditionType, hyperv1.NodePoolAutorepairEnabledConditionType, hyperv1.NodePoolReachedIgnitionEndpoint} {
					g.Expect(w.condition(t, c)).To(Equal("True/AsExpected"), c+": %v", findCondition(np.Status.Conditions, c))
				}
			}
		}
		g.Eventually(steady(2), stockPatience, often).Should(Succeed())
		t.Logf("NodePool to two healthy nodes: %v", time.Since(begin))
		g.Expect(w.pool(t).Status.NodesInfo.NodeVersions).To(ConsistOf(hyperv1.NodeVersion{OCPVersion: "1.36.3", KubeletVersion: "v1.36.3", ReadyNodeCount: 2}))
		first := w.machineNames(t)

		change := func(content string) {
			body := fmt.Appendf(nil, `{"data":{"config":%q}}`, machineConfig("/etc/motd", "data:,"+content))
			g.Expect(w.client.Patch(ctx, config.DeepCopy(), client.RawPatch("application/merge-patch+json", body))).To(Succeed())
		}
		most.Store(0)
		change("b")
		hash := w.pool(t).Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
		g.Eventually(func() string { return w.pool(t).Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] }, stockPatience, often).ShouldNot(Equal(hash))
		g.Eventually(steady(2), stockPatience, often).Should(Succeed())
		second := w.machineNames(t)
		g.Expect(second).NotTo(ContainElements(first))
		g.Expect(most.Load()).To(BeNumerically("<=", 3), "maxSurge is 1")

		// There and back before the first machine is replaced: the machines that fit stay.
		g.Expect(w.client.Patch(ctx, w.pool(t), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"nodeLabels":{"example.com/zone":"a"}}}`)))).To(Succeed())
		change("c")
		g.Eventually(func() string { return w.condition(t, hyperv1.NodePoolUpdatingConfigConditionType) }, patience, often).Should(Equal("True/AsExpected"))
		change("b")
		g.Eventually(steady(2), stockPatience, often).Should(Succeed())
		g.Expect(w.machineNames(t)).To(Equal(second))
		machine := &clusterv1.Machine{}
		g.Eventually(func() string {
			_ = w.client.Get(ctx, client.ObjectKey{Namespace: w.hcpNS, Name: second[0]}, machine)
			return machine.Labels["managed.hypershift.openshift.io.example.com/zone"]
		}, stockPatience, often).Should(Equal("a"), "labels reach machines without a rollout")

		scale := w.pool(t)
		scale.Spec.Replicas = ptr.To[int32](4)
		g.Expect(w.client.Patch(ctx, scale, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":4}}`)))).To(Succeed())
		g.Eventually(steady(4), stockPatience, often).Should(Succeed())
		g.Expect(w.machineNames(t)).To(ContainElements(second))

		begin = time.Now()
		g.Expect(w.client.Delete(ctx, w.pool(t))).To(Succeed())
		g.Eventually(func() bool {
			return apierrors.IsNotFound(w.client.Get(ctx, w.request().NamespacedName, &hyperv1.NodePool{}))
		}, stockPatience, often).Should(BeTrue())
		t.Logf("deletion of four machines: %v", time.Since(begin))
		w.expectNothing(t)
	})
}

func (w *world) machineNames(t testing.TB) []string {
	list := &clusterv1.MachineList{}
	NewWithT(t).Expect(w.client.List(t.Context(), list, client.InNamespace(w.hcpNS))).To(Succeed())
	var names []string
	for _, m := range list.Items {
		names = append(names, m.Name)
	}
	return names
}

// logOnFailure says what Cluster API made of it.
func (w *world) logOnFailure(t testing.TB) {
	if !t.Failed() {
		return
	}
	ctx := context.Background() // the test's own has ended
	for _, list := range []client.ObjectList{&hyperv1.NodePoolList{}, &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineList{}} {
		_ = w.client.List(ctx, list, client.InNamespace(w.hcpNS))
		if _, pools := list.(*hyperv1.NodePoolList); pools {
			_ = w.client.List(ctx, list, client.InNamespace(w.ns))
		}
		raw, _ := yaml.Marshal(list)
		t.Logf("%T: %s", list, raw)
	}
}
