package why_test

import (
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/rolls"
	"hcp.internal/platform/internal/why"
)

// faults are the 45 of the list that every part of this project is held to, as they show in the objects of both sides.
var faults = []struct {
	name   string
	inject func(*world)
	of     why.Object
	cause  string // a regular expression for the first line
	rule   string
}{
	{"1 the operator is killed again and again", func(w *world) { w.down("operator", crash(137, "Error")) }, demo, `operator-x does not stay up`, "pod-crash-loop-back-off"},
	{"2 an operator was stopped and woke up beside another", func(w *world) { w.Leases[0].Spec.RenewTime = &metav1.MicroTime{Time: noon.Add(-10 * time.Minute)} }, demo, `operator-abc, which holds lease .* has stalled`, "leader-stands-still"},
	{"3 a stale cache", func(w *world) {
		w.says(hyperv1.ReconciliationSucceeded, no, hyperv1.ReconciliationErrorReason, `applying Deployment x: the object has been modified; please apply your changes to the latest version`)
	}, demo, `has been modified`, "lost-race"},
	{"4 a watch is lost", func(w *world) {
		w.HostedClusters[0].Generation = 2
		w.HostedClusters[0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: ptrTime(ago(20 * time.Minute))}}
	}, demo, `has not processed the newest change`, "cluster-unseen"},
	{"5 a storm of conflicts", func(w *world) {
		w.warn("HostedCluster", "clusters", "demo", "HotLoop", "ConfigMap clusters-demo/x: fields go back and forth between a and b: data.y")
	}, demo, `go back and forth`, "hot-loop"},
	{"6 an API server is away", func(w *world) {
		w.says(hyperv1.HostedClusterAvailable, no, hyperv1.WaitingForAvailableReason, "0 of 1 replicas")
		w.controlPlaneSays(hyperv1.KubeAPIServerAvailable, no, hyperv1.WaitingForAvailableReason, "0 of 1 replicas of Deployment kube-apiserver are available")
		w.down("kube-apiserver", crash(1, "Error"))
	}, demo, `kube-apiserver-x does not stay up`, "pod-crash-loop-back-off"},
	{"7 an API server is slow and answers 429", func(w *world) {
		w.says(hyperv1.ReconciliationSucceeded, no, hyperv1.ReconciliationErrorReason, "listing Secrets: the server has received too many requests and has asked us to try again later")
	}, demo, `too many requests`, "api-overloaded"},
	{"8 an answer is lost", func(w *world) {
		w.says(hyperv1.ReconciliationSucceeded, no, hyperv1.ReconciliationErrorReason, `creating Secret x: Post "https://10.0.0.1": unexpected EOF`)
	}, demo, `unexpected EOF`, "answer-lost"},
	{"9 a webhook is down", func(w *world) {
		w.says(hyperv1.ReconciliationSucceeded, no, hyperv1.ReconciliationErrorReason, `Internal error occurred: failed calling webhook "policy.example.com": Post "https://policy.svc": dial tcp: connection refused`)
	}, demo, `failed calling webhook "policy.example.com"`, "webhook-down"},
	{"10 a definition is missing", func(w *world) {
		w.says(hyperv1.ReconciliationSucceeded, no, hyperv1.ReconciliationErrorReason, `no matches for kind "MachineDeployment" in version "cluster.x-k8s.io/v1beta2"`)
	}, demo, `no matches for kind "MachineDeployment"`, "definition-missing"},
	{"11 somebody scales the operator away by hand", func(w *world) {
		for i := range w.Deployments {
			if w.Deployments[i].Name == "operator" {
				*w.Deployments[i].Spec.Replicas = 0
			}
		}
	}, demo, `Deployment operator is scaled to 0`, "workload-off"},
	{"12 an object is too large", func(w *world) {
		w.says(hyperv1.ReconciliationSucceeded, no, hyperv1.ReconciliationErrorReason, `applying ConfigMap clusters-demo/user-ca: etcdserver: request is too large`)
	}, demo, `ConfigMap clusters-demo/user-ca: .*too large`, "object-too-large"},
	{"13 a clock is wrong", func(w *world) {
		w.says(hyperv1.HostedClusterDegraded, yes, "CertificatesNotReconciled", "no certificates are issued")
		w.controlPlaneSays(hyperv1.HostedControlPlaneDegraded, yes, "CertificatesNotReconciled", "no certificates are issued: the clock of this node differs from that of the API server by 10m0s")
	}, demo, `the clock of this node`, "clock-wrong"},
	{"14 the leader is lost during an upgrade", func(w *world) {
		w.says(hyperv1.HostedClusterProgressing, yes, hyperv1.ProgressingReason, "Working towards 1.36.4")
		w.down("control-plane-operator", crash(2, "Error"))
		w.controlPlaneSays(hyperv1.ClusterVersionProgressing, yes, "Progressing", "")
	}, demo, `control-plane-operator-x does not stay up`, "pod-crash-loop-back-off"},
	{"15 memory is used up", func(w *world) {
		w.says(hyperv1.HostedClusterAvailable, no, hyperv1.EtcdWaitingForQuorumReason, "etcd")
		w.controlPlaneSays(hyperv1.EtcdAvailable, no, hyperv1.EtcdWaitingForQuorumReason, "1 of 3 etcd members are ready, 2 are needed")
		w.down("etcd", crash(137, "OOMKilled"))
	}, demo, `etcd-0 runs out of memory`, "pod-oomkilled"},
	{"16 a member of etcd is lost", func(w *world) {
		w.says(hyperv1.HostedClusterAvailable, no, hyperv1.EtcdWaitingForQuorumReason, "etcd")
		w.controlPlaneSays(hyperv1.EtcdAvailable, no, hyperv1.EtcdWaitingForQuorumReason, "1 of 3 etcd members are ready, 2 are needed")
		w.down("etcd", fitsNowhere("0/3 nodes are available: 1 node(s) had volume node affinity conflict. preemption: none"))
	}, demo, `pod etcd-0 fits on no node: .*volume node affinity`, "pod-unschedulable"},
	{"17 the database is full", func(w *world) {
		w.says(hyperv1.HostedClusterAvailable, no, hyperv1.EtcdDatabaseFullReason, "etcd")
		w.controlPlaneSays(hyperv1.EtcdAvailable, no, hyperv1.EtcdDatabaseFullReason, "the database of etcd has grown to its quota of 8 GiB")
	}, demo, `grown to its quota`, "etcd-full"},
	{"18 a certificate has expired", func(w *world) {
		w.says(hyperv1.ReconciliationSucceeded, no, hyperv1.ReconciliationErrorReason, `reading the hosted cluster: tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026`)
	}, demo, `certificate has expired`, "certificate-expired"},
	{"19 half of a key pair", func(w *world) {
		w.says(hyperv1.HostedClusterDegraded, yes, "CertificatesNotReconciled", "x")
		w.controlPlaneSays(hyperv1.HostedControlPlaneDegraded, yes, "CertificatesNotReconciled", "Secret clusters-demo/root-ca: ca.key does not belong to ca.crt")
	}, demo, `root-ca: ca.key does not belong`, "certificates-not-reconciled"},
	{"20 a revocation is under way", func(w *world) {
		w.says(hyperv1.HostedClusterProgressing, yes, hyperv1.ProgressingReason, "certificates of customer-break-glass are being revoked: kube-apiserver takes up a new trust bundle")
	}, demo, `being revoked`, "cluster-rolling-out"},
	{"21 the rollout of kube-apiserver is stuck", func(w *world) {
		w.says(hyperv1.HostedClusterProgressing, yes, hyperv1.ProgressingReason, "Working towards 1.36.4")
		w.controlPlaneSays(hyperv1.ClusterVersionProgressing, yes, "Progressing", "")
		w.componentSays("kube-apiserver", hyperv1.ControlPlaneComponentRolloutComplete, no, "WaitingForRolloutComplete", "of 1 replicas, 0 are up to date")
		w.down("kube-apiserver", waits("ImagePullBackOff", "Back-off pulling image"))
	}, demo, `kube-apiserver-x can't get image`, "pod-image-pull-back-off"},
	{"22 components wait for each other", func(w *world) {
		w.says(hyperv1.HostedClusterProgressing, yes, hyperv1.ProgressingReason, "Working towards 1.36.4")
		w.controlPlaneSays(hyperv1.ClusterVersionProgressing, yes, "Progressing", "")
		w.componentSays("etcd", hyperv1.ControlPlaneComponentRolloutComplete, no, "WaitingForDependencies", "Waiting for Dependencies: kube-apiserver")
		w.componentSays("kube-apiserver", hyperv1.ControlPlaneComponentRolloutComplete, no, "WaitingForDependencies", "Waiting for Dependencies: etcd")
	}, demo, `wait for each other: etcd → kube-apiserver → etcd`, "component-cycle"},
	{"23 deleted at a bad moment", func(w *world) {
		deleted(&w.HostedClusters[0].ObjectMeta, 10*time.Minute, hyperv1.HostedClusterFinalizer)
		w.says(hyperv1.HostedClusterDestroyed, no, "WaitingForDependents", "Waiting for Namespace clusters-demo")
		deleted(&w.Namespaces[0].ObjectMeta, 8*time.Minute)
		w.Namespaces[0].Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionTrue, Reason: "DiscoveryFailed", Message: "unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion discovery"}}
	}, demo, `metrics.k8s.io/v1beta1`, "deletion-namespace"},
	{"24 a finalizer of somebody else", func(w *world) {
		deleted(&w.NodePools[0].ObjectMeta, 10*time.Minute, hyperv1.NodePoolFinalizer)
		deleted(&w.Machines[0].ObjectMeta, 9*time.Minute, "example.com/keep")
	}, workers, `finalizer example.com/keep holds Machine workers-a`, "deletion-finalizer"},
	{"25 somebody else's object has our name", func(w *world) {
		w.says(hyperv1.ReconciliationSucceeded, no, hyperv1.ReconciliationErrorReason, "Secret clusters/demo-admin-kubeconfig belongs to somebody else: rename it")
	}, demo, `demo-admin-kubeconfig belongs to somebody else`, "owned-by-other"},
	{"26 names collide", func(w *world) {
		w.says(hyperv1.ValidHostedClusterConfiguration, no, hyperv1.InvalidConfigurationReason, "metadata.name: the control plane would go into namespace clusters-demo, which exists and belongs to HostedCluster clusters/de.mo: choose another name for the HostedCluster, or remove that namespace")
	}, demo, `belongs to HostedCluster clusters/de\.mo`, "owned-by-other"},
	{"27 an old snapshot is restored", func(w *world) {
		w.says(hyperv1.HostedClusterRestoredFromBackup, no, "Restoring", "2 of 5 nodes of the snapshot are not there any more")
	}, demo, `of the snapshot are not there`, "cluster-restoring"},
	{"28 the configuration goes there and back", func(w *world) {
		note, _ := rolls.Next(rolls.Note{}, false, "aaaa", map[string]string{"ConfigMap kubelet": "11"}, noon)
		note, _ = rolls.Next(note, true, "bbbb", map[string]string{"ConfigMap kubelet": "22"}, noon)
		note, _ = rolls.Next(note, true, "aaaa", map[string]string{"ConfigMap kubelet": "11"}, noon)
		w.NodePools[0].Annotations[hyperv1.NodePoolRollsAnnotation], _ = note.Text()
		w.poolSays(hyperv1.NodePoolUpdatingConfigConditionType, yes, "AsExpected", "")
	}, workers, `machines are being replaced, since ConfigMap kubelet: 22 → 11`, "pool-updating"},
	{"29 Cluster API is dead", func(w *world) {
		w.poolSays(hyperv1.NodePoolReadyConditionType, no, "WaitingForAvailable", "0 of 1 machines are available")
		w.down("cluster-api", crash(1, "Error"))
	}, workers, `cluster-api-x does not stay up`, "pod-crash-loop-back-off"},
	{"29 a machine never joins", func(w *world) {
		w.poolSays(hyperv1.NodePoolAllMachinesReadyConditionType, no, "NodeDoesNotExist", "1 of 1 machines are not ready")
		w.Machines[0].Status.NodeRef.Name = ""
	}, workers, `machine workers-a (runs and has never joined|is booting)`, "machine-never-joined"},
	{"30 machines get no token", func(w *world) {
		w.poolSays(hyperv1.NodePoolReachedIgnitionEndpoint, no, hyperv1.NodePoolIgnitionNotReachedReason, "no machine has fetched its configuration from https://10.0.0.1:443")
	}, workers, `no machine has fetched its configuration`, "ignition-not-reached"},
	{"31 the payload can't be made", func(w *world) {
		w.poolSays(hyperv1.NodePoolValidGeneratedPayloadConditionType, no, hyperv1.InvalidConfigurationReason, `ConfigMap "tuning": unknown kind Foo`)
	}, workers, `"tuning": unknown kind Foo`, "pool-payload-failed"},
	{"32 a certificate is asked for that nobody may have", func(w *world) {
		w.poolSays(hyperv1.NodePoolAllMachinesReadyConditionType, no, "NodeDoesNotExist", "1 of 1 machines are not ready")
		w.Machines[0].Status.NodeRef.Name = ""
		w.request("system:node:workers-a", func(r *certificatesv1.CertificateSigningRequest) {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Reason: "Names", Message: "address 10.0.0.9 is none of the machine"}}
		})
	}, workers, `was refused: address 10.0.0.9 is none of the machine`, "request-denied"},
	{"33 an image is malformed", func(w *world) {
		w.packageSays(packagesv1.ConditionUnpacked, no, packagesv1.ReasonLoadError, "image registry.example.com/addon:1: manifest.yaml is missing")
		w.packageSays(packagesv1.ConditionInvalid, yes, packagesv1.ReasonLoadError, "image registry.example.com/addon:1: manifest.yaml is missing")
	}, addon, `manifest.yaml is missing`, "package-invalid"},
	{"34 a malicious package", func(w *world) {
		w.revisionSays(packagesv1.ReasonPreflightError, "object kube-system/x: must be in namespace clusters-demo")
	}, addon, `kube-system/x: must be in namespace`, "object-refused"},
	{"35 objects collide", func(w *world) {
		w.revisionSays(packagesv1.ReasonCollisionDetected, "object clusters-demo/x kind:ConfigMap: is controlled by Deployment y")
	}, addon, `kind:ConfigMap: is controlled by Deployment y`, "object-collision"},
	{"35 a probe fails", func(w *world) {
		w.revisionSays(packagesv1.ReasonProbeFailure, `Phase "deploy" failed: Deployment clusters-demo/web: condition Available == True: MinimumReplicasUnavailable`)
	}, addon, `Deployment clusters-demo/web`, "probe-failed"},
	{"36 the connector is away", func(w *world) {
		w.phaseSays(packagesv1.ReasonTargetUnreachable, "the target cluster's API server can't be reached: connection refused")
		w.down("package-operator-remote-phase-manager", waits("CreateContainerConfigError", `secret "service-network-admin-kubeconfig" not found`))
	}, addon, `secret "service-network-admin-kubeconfig" not found`, "pod-create-container-config-error"},
	{"37 a rollout has used its budget up", func(w *world) {
		w.fleetSays(packagesv1.ConditionProgressing, yes, "1/6 packages progressed. Group canary is current. Unavailable, which uses up maxUnavailable 1: clusters/demo.")
		w.HostedClusterPackages[0].Status.Processing = []packagesv1.HostedClusterPackageRefStatus{{Namespace: ns, Name: "addon"}}
		w.revisionSays(packagesv1.ReasonProbeFailure, `Phase "deploy" failed: Deployment clusters-demo/web: not available`)
	}, fleet, `Deployment clusters-demo/web: not available`, "probe-failed"},
	{"38 a migration does not go on", func(w *world) {
		w.says(hyperv1.PrivateCAPIMigrationProgressing, no, hyperv1.MigrationHeldReason, "annotation private-capi-hold stops the move before phase Cutover")
	}, demo, `private-capi-hold stops the move`, "migration-held"},
	{"39 the proxy of Cluster API does not start", func(w *world) {
		w.poolSays(hyperv1.NodePoolReadyConditionType, no, "WaitingForAvailable", "0 of 1 machines are available")
		w.down("capi-provider", func(p *corev1.Pod) { crash(1, "Error")(p); p.Status.ContainerStatuses[0].Name = "kube-apiserver-proxy" })
	}, workers, `container kube-apiserver-proxy ends again and again`, "pod-crash-loop-back-off"},
	{"40 the ignition server is held open by slow clients", func(w *world) {
		w.says(hyperv1.IgnitionEndpointAvailable, no, hyperv1.WaitingForAvailableReason, "Deployment ignition-server is not available yet")
		w.down("ignition-server", notReady)
		w.warn("Pod", ns, "ignition-server-x", "Unhealthy", "Readiness probe failed: context deadline exceeded")
	}, demo, `ignition-server-x runs and is not ready: Readiness probe failed`, "pod-not-ready"},
	{"41 a hosted cluster answers what no API server should", func(w *world) {
		w.phaseSays(packagesv1.ReasonTargetMisbehaves, "the target cluster's API server misbehaves: it redirects to somewhere else")
	}, addon, `redirects to somewhere else`, "target-misbehaves"},
	{"42 a worker asks for what it may not have", func(w *world) {
		w.says(hyperv1.DataPlaneConnectionAvailable, no, hyperv1.NoWorkerNodesAvailableReason, "no node is Ready")
		w.poolSays(hyperv1.NodePoolAllNodesHealthyConditionType, no, "NodeNotReady", "1 of 1")
		w.machineSays(clusterv1.MachineNodeHealthyCondition, no, "NodeNotReady", "Node is not ready")
		w.Hosted["clusters/demo"].Nodes[0].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status.", LastTransitionTime: ago(5 * time.Minute)}
	}, demo, `Node workers-a: Kubelet stopped posting`, "hosted-node-silent"},
	{"43 an author asks for pods that nobody may run", func(w *world) {
		w.says(hyperv1.HostedClusterAvailable, no, hyperv1.WaitingForAvailableReason, "waiting")
		w.controlPlaneSays(hyperv1.HostedControlPlaneAvailable, no, hyperv1.ControlPlaneComponentsNotAvailableReason, "components not available yet: kube-controller-manager")
		w.componentSays("kube-controller-manager", hyperv1.ControlPlaneComponentAvailable, no, "PodRefused", "pods are refused")
		w.deployment(ns, "kube-controller-manager")
		d := &w.Deployments[len(w.Deployments)-1]
		d.Status.AvailableReplicas = 0
		d.Status.Conditions = append(d.Status.Conditions, replicaFailure(`pods "kube-controller-manager-x" is forbidden: violates PodSecurity "restricted:latest": privileged`))
	}, demo, `violates PodSecurity`, "pods-refused"},
	{"44 a noisy tenant", func(w *world) {
		w.says(hyperv1.ConfigOperatorReconciliationSucceeded, no, hyperv1.ReconcileErrorReason, "writing ConfigMap kube-system/x: the server has received too many requests and has asked us to try again later")
	}, demo, `too many requests`, "api-overloaded"},
	{"45 an older operator meets newer objects", func(w *world) {
		w.says(hyperv1.ReconciliationSucceeded, no, hyperv1.ReconciliationErrorReason, `applying HostedControlPlane clusters-demo/demo: strict decoding error: unknown field "spec.new"`)
	}, demo, `unknown field "spec.new"`, "unknown-field"},
}

func ptrTime(t metav1.Time) *metav1.Time { return &t }

func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run("When fault "+f.name+" is there the first line should name it", func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld()
			f.inject(w)
			a := why.Explain(&w.Snapshot, f.of)
			g.Expect(a.Cause).To(MatchRegexp(f.cause), "%+v", a)
			g.Expect(a.Rule).To(Equal(f.rule), "%+v", a)
			g.Expect(a.Do).NotTo(BeEmpty())
			g.Expect(len(a.Chain)).To(And(BeNumerically(">", 0), BeNumerically("<=", why.MaxLinks)))
			g.Expect(a.Heals).To(Equal(a.State == why.Waiting))
			g.Expect(a.Chain[len(a.Chain)-1].Object.Name).NotTo(BeEmpty())
		})
	}
	t.Run("When the list of faults is counted none should be missing", func(t *testing.T) {
		seen := map[string]bool{}
		for _, f := range faults {
			seen[regexp.MustCompile(`^\d+`).FindString(f.name)] = true
		}
		NewWithT(t).Expect(seen).To(HaveLen(45))
	})
}
