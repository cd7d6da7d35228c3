//go:build hosts

package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/local/builds"
	platformmachine "hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/test/objects"
)

// startManager runs the stock manager of Cluster API on the control plane's namespace. The hosted cluster is the same API server.
func (s *stage) startManager() {
	s.Helper()
	g := NewWithT(s.TB)
	path, err := filepath.Abs(filepath.Join("..", "..", builds.ClusterAPIManager))
	g.Expect(err).NotTo(HaveOccurred())
	dir := s.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig := testenv.Start(s.TB).Kubeconfig(s.TB)
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "kubeconfig": kubeconfig} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
	}
	ports, err := testenv.FreePorts(3)
	g.Expect(err).NotTo(HaveOccurred())
	p, err := testenv.StartProcess(path, dir, "capi-manager", nil, "--kubeconfig=kubeconfig", "--namespace="+s.ns, "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
		"--feature-gates=MachinePool=false,ClusterTopology=false", "--insecure-diagnostics", "--webhook-cert-dir="+dir, fmt.Sprintf("--health-addr=127.0.0.1:%d", ports[0]),
		fmt.Sprintf("--webhook-port=%d", ports[1]), fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", ports[2]), "--v=2")
	g.Expect(err).NotTo(HaveOccurred(), "make capi builds it")
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("capi-manager: %s", p.Tail())
		}
		p.Kill()
	})
	cluster := capi.Cluster(s.hc, objects.New(clusterKind, s.ns, s.hc.Name))
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{} // there is no HostedControlPlane here
	g.Expect(s.admin.Create(s.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: cluster.Name + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: cluster.Name}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig}})).To(Succeed())
	g.Expect(s.admin.Create(s.Context(), cluster)).To(Succeed())
	g.Expect(capi.MarkInitialized(s.Context(), s.admin, cluster, time.Now())).To(Succeed())
}

// addPool writes what the NodePool controller does, with the defaults of the webhooks that nobody registers.
func (s *stage) addPool(replicas int32) {
	s.Helper()
	g := NewWithT(s.TB)
	template, err := s.platform.MachineTemplate(platformmachine.Input{HostedCluster: s.hc, NodePool: s.pool})
	g.Expect(err).NotTo(HaveOccurred())
	template.Object.SetNamespace(s.ns)
	template.Object.SetName("workers-1")
	g.Expect(s.admin.Create(s.Context(), template.Object)).To(Succeed())
	labels := map[string]string{clusterv1.ClusterNameLabel: s.hc.Spec.InfraID, clusterv1.MachineDeploymentNameLabel: "workers"}
	g.Expect(s.admin.Create(s.Context(), &clusterv1.MachineDeployment{ObjectMeta: s.meta("workers"), Spec: clusterv1.MachineDeploymentSpec{
		ClusterName: s.hc.Spec.InfraID, Replicas: ptr.To(replicas), Selector: metav1.LabelSelector{MatchLabels: labels},
		Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: labels}, Spec: clusterv1.MachineSpec{
			ClusterName: s.hc.Spec.InfraID, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: provided.Group, Kind: "AgentMachineTemplate", Name: "workers-1"},
		}},
		Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}},
	}})).To(Succeed())
}

// joined plays the stand-ins, makes a node of each host that has booted, and tells the hosts of Machines that have one.
func (s *stage) joined() []string {
	if err := s.settle(s.provider, s.admin); err != nil {
		s.Log(err)
		return nil
	}
	bound, _ := s.bound()
	for _, name := range bound {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID(name)}}
		if s.admin.Create(s.Context(), node) == nil {
			node.Status = corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
			_ = s.admin.Status().Update(s.Context(), node)
		}
	}
	list := &clusterv1.MachineList{}
	if err := s.admin.List(s.Context(), list, client.InNamespace(s.ns)); err != nil {
		return nil
	}
	var hosts []string
	for _, m := range list.Items {
		if m.Status.NodeRef.Name != "" && m.DeletionTimestamp.IsZero() {
			hosts = append(hosts, m.Status.NodeRef.Name)
		}
	}
	return hosts
}

// TestStock has the stock manager of Cluster API make, scale and remove machines whose provider is the stand-in.
func TestStock(t *testing.T) {
	s := newStage(t, "host-a=small", "host-b=large", "host-c=large", "host-d=large")
	g := NewWithT(t)
	s.startManager()
	s.addPool(2)
	const patience, often = "240s", "500ms"
	g.Eventually(s.joined, patience, often).Should(HaveLen(2))
	g.Expect(s.joined()).NotTo(ContainElement("host-a"))
	scale := func(n int) {
		g.Expect(s.admin.Patch(t.Context(), &clusterv1.MachineDeployment{ObjectMeta: s.meta("workers")}, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)))).To(Succeed())
	}
	t.Run("When more is asked for than there is all others should join and a machine say what is missing", func(t *testing.T) {
		g := NewWithT(t)
		scale(4)
		g.Eventually(s.joined, patience, often).Should(ConsistOf("host-b", "host-c", "host-d"))
		g.Eventually(func() (reasons []string) {
			s.joined()
			items, _ := objects.List(t.Context(), s.admin, machineKind, s.ns)
			for _, i := range items {
				conditions, _, _ := unstructured.NestedSlice(i.Object, "status", "conditions")
				for _, c := range conditions {
					reasons = append(reasons, fmt.Sprint(c.(map[string]any)["reason"]))
				}
			}
			return reasons
		}, patience, often).Should(ContainElement(noSuitable))
	})
	t.Run("When it shrinks hosts should be free", func(t *testing.T) {
		g := NewWithT(t)
		scale(1)
		g.Eventually(s.joined, patience, often).Should(HaveLen(1))
		g.Eventually(func() []string { s.joined(); _, free := s.bound(); return free }, patience, often).Should(HaveLen(3))
	})
	t.Run("When the pool is deleted all hosts should be free", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(s.admin.Delete(t.Context(), &clusterv1.MachineDeployment{ObjectMeta: s.meta("workers")})).To(Succeed())
		g.Eventually(func() []string { s.joined(); _, free := s.bound(); return free }, patience, often).Should(HaveLen(4))
	})
}
