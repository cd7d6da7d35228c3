package why_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/why"
)

func dyingMachine(reason, message string, finalizers ...string) func(*world) {
	return func(w *world) {
		deleted(&w.Machines[0].ObjectMeta, 10*time.Minute, append(finalizers, clusterv1.MachineFinalizer)...)
		w.machineSays(clusterv1.MachineDeletingCondition, yes, reason, message)
	}
}

// ofDestroy is the finalizer of `hypershift destroy cluster`.
const ofDestroy = "openshift.io/destroy-cluster"

var deletionRows = []row{
	{"deletion-cluster", demo, func(w *world) {
		deleted(&w.HostedClusters[0].ObjectMeta, time.Minute, hyperv1.HostedClusterFinalizer)
		w.says(hyperv1.HostedClusterDestroyed, no, "Waiting", "Waiting for Cluster x")
		w.NodePools = nil
	}, why.Waiting, "Waiting for Cluster x"},
	{"deletion-pool", workers, func(w *world) {
		deleted(&w.NodePools[0].ObjectMeta, time.Minute, hyperv1.NodePoolFinalizer)
		w.Machines = nil
		w.poolSays(hyperv1.NodePoolReadyConditionType, no, "Deleting", "there are still Machines: a")
	}, why.Waiting, "still Machines"},
	{"deletion-drain-blocked", machine, dyingMachine(clusterv1.MachineDeletingDrainingNodeReason, "Drain not completed:\n* Pod a/b: cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 1 healthy pods"), why.Broken, "budget web"},
	{"deletion-volumes", machine, dyingMachine(clusterv1.MachineDeletingWaitingForVolumeDetachReason, "volume v"), why.Broken, "volume v"},
	{"deletion-hook", machine, dyingMachine(clusterv1.MachineDeletingWaitingForPreDrainHookReason, "hook h"), why.Broken, "hook h"},
	{"deletion-infrastructure", machine, dyingMachine(clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, "AWSMachine x"), why.Broken, "AWSMachine x"},
	{"deletion-draining", machine, func(w *world) {
		dyingMachine(clusterv1.MachineDeletingDrainingNodeReason, "3 pods are moving")(w)
		w.Machines[0].DeletionTimestamp = ptr.To(ago(time.Minute))
	}, why.Waiting, "3 pods"},
	{"deletion-control-plane", why.Object{Kind: "HostedControlPlane", Namespace: ns, Name: "demo"}, func(w *world) {
		deleted(&w.HostedControlPlanes[0].ObjectMeta, time.Minute, hyperv1.HostedControlPlaneFinalizer)
	}, why.Waiting, "being deleted"},
	{"deletion-namespace", why.Object{Kind: "Namespace", Name: ns}, func(w *world) {
		deleted(&w.Namespaces[0].ObjectMeta, 10*time.Minute)
		w.Namespaces[0].Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "pods. has 1 resource instances"}}
	}, why.Broken, "pods. has 1"},
	{"deletion-package", addon, func(w *world) {
		deleted(&w.Packages[0].ObjectMeta, time.Minute, packagesv1.MetricsFinalizer)
		w.ObjectDeployments = nil
	}, why.Waiting, "being deleted"},
	{"deletion-revision", addon, func(w *world) {
		deleted(&w.Packages[0].ObjectMeta, 10*time.Minute)
		deleted(&w.ObjectDeployments[0].ObjectMeta, 10*time.Minute)
		deleted(&w.ObjectSets[0].ObjectMeta, 10*time.Minute, packagesv1.CachedFinalizer)
		set(&w.ObjectSets[0].Status.Conditions, packagesv1.ConditionDeleting, yes, "WaitingForObjects", `Phase "deploy" waits until a/x are gone`)
	}, why.Broken, "a/x are gone"},
	{"deletion-phase", why.Object{Kind: "ObjectSetPhase", Namespace: ns, Name: "addon-1-deploy"}, func(w *world) {
		deleted(&w.ObjectSetPhases[0].ObjectMeta, 10*time.Minute, packagesv1.CachedFinalizer)
		set(&w.ObjectSetPhases[0].Status.Conditions, packagesv1.ConditionDeleting, yes, "WaitingForObjects", "b/y are gone")
	}, why.Broken, "b/y are gone"},
	{"deletion-finalizer", why.Object{Kind: "Deployment", Namespace: ns, Name: "kube-apiserver"}, func(w *world) {
		for i := range w.Deployments {
			if w.Deployments[i].Name == "kube-apiserver" {
				deleted(&w.Deployments[i].ObjectMeta, 10*time.Minute, "foregroundDeletion")
			}
		}
	}, why.Broken, "finalizer foregroundDeletion still holds"},
	{"deletion-unfinished-destroy", demo, func(w *world) {
		deleted(&w.HostedClusters[0].ObjectMeta, 10*time.Minute, ofDestroy)
		w.HostedClusters[0].Spec.Platform.Type = hyperv1.AWSPlatform
		w.says(hyperv1.HostedClusterDestroyed, no, "Waiting", "Waiting for Cluster x")
	}, why.Broken, "`hypershift destroy cluster` has not cleaned up"},
	{"deletion-finalizer", demo, func(w *world) { // the command waits for it, too
		deleted(&w.HostedClusters[0].ObjectMeta, 10*time.Minute, ofDestroy, "example.com/keep")
	}, why.Broken, "finalizer example.com/keep holds HostedCluster demo"},
	{"deletion-cluster", demo, func(w *world) { // the operator goes first
		deleted(&w.HostedClusters[0].ObjectMeta, time.Minute, ofDestroy, hyperv1.HostedClusterFinalizer)
		w.says(hyperv1.HostedClusterDestroyed, no, "Waiting", "Waiting for Cluster x")
		w.NodePools = nil
	}, why.Waiting, "Waiting for Cluster x"},
	{"deletion-finalizer", why.Object{Kind: "PersistentVolumeClaim", Namespace: ns, Name: "data-etcd-0"}, func(w *world) { // nobody uses it
		deleted(&w.Claims[0].ObjectMeta, 10*time.Minute, "kubernetes.io/pvc-protection")
	}, why.Broken, "finalizer kubernetes.io/pvc-protection still holds"},
	{"deletion-finalizer", why.Object{Kind: "PersistentVolumeClaim", Namespace: ns, Name: "data-etcd-0"}, func(w *world) {
		deleted(&w.Claims[0].ObjectMeta, 10*time.Minute, "kubernetes.io/pvc-protection")
		w.mount("etcd-0", "data-etcd-0", crash(1, "Error")) // it holds the claim whether it is well or not
	}, why.Broken, "pod etcd-0 uses it"},
	{"deletion-finalizer", why.Object{Kind: "PersistentVolumeClaim", Namespace: ns, Name: "data-etcd-0"}, func(w *world) {
		deleted(&w.Claims[0].ObjectMeta, 10*time.Minute, "kubernetes.io/pvc-protection")
		w.mount("etcd-0", "data-etcd-0", func(p *corev1.Pod) { deleted(&p.ObjectMeta, 30*time.Second) })
	}, why.Waiting, "pod etcd-0 uses it"},
	{"node-not-ready", why.Object{Kind: "Namespace", Name: ns}, func(w *world) { // a pod on a node that is gone, and not the claim that it uses
		deleted(&w.Namespaces[0].ObjectMeta, 10*time.Minute)
		w.Namespaces[0].Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "pods. has 1 resource instances"}}
		deleted(&w.Claims[0].ObjectMeta, 10*time.Minute, "kubernetes.io/pvc-protection")
		w.mount("etcd-0", "data-etcd-0", func(p *corev1.Pod) { deleted(&p.ObjectMeta, 10*time.Minute) })
		w.ManagementNodes[0].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Message: "Kubelet stopped posting"}
	}, why.Broken, "Kubelet stopped posting"},
	{"workload-lacks-replicas", why.Object{Kind: "StatefulSet", Namespace: ns, Name: "etcd"}, func(w *world) { // etcd-1 is being replaced with its volume
		w.StatefulSets[0].Status.Replicas, w.StatefulSets[0].Status.AvailableReplicas = 2, 2
		w.Pods = slices.DeleteFunc(w.Pods, func(p corev1.Pod) bool { return p.Name == "etcd-1" })
		deleted(&w.Claims[1].ObjectMeta, 5*time.Second, "kubernetes.io/pvc-protection")
	}, why.Waiting, "2 of 3 replicas"},
	{"deletion-cluster", demo, func(w *world) { // somebody else's finalizer does not hold it yet
		deleted(&w.HostedClusters[0].ObjectMeta, time.Minute, hyperv1.HostedClusterFinalizer, "example.com/keep")
		w.says(hyperv1.HostedClusterDestroyed, no, "Waiting", "Waiting for NodePool workers")
	}, why.Waiting, "Waiting for NodePool workers"},
	{"not-found", why.Object{Kind: "HostedCluster", Namespace: "clusters", Name: "nobody"}, func(*world) {}, why.Broken, "there is no HostedCluster clusters/nobody"},
	{"unreadable", why.Object{Kind: "Machine", Namespace: ns, Name: "x"}, func(w *world) { w.Unread = map[string]string{"Machine": "connection refused"} }, why.Broken, "connection refused"},
}

func TestDeletion(t *testing.T) {
	t.Run("When only the command that destroys holds a cluster it should say to run it again, and not to take its finalizer off", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld()
		deleted(&w.HostedClusters[0].ObjectMeta, 10*time.Minute, ofDestroy)
		w.HostedClusters[0].Spec.Platform.Type = hyperv1.AWSPlatform
		a := why.Explain(&w.Snapshot, demo)
		g.Expect(a.Do).To(And(ContainSubstring("`hypershift destroy cluster aws --name demo --namespace clusters`"), ContainSubstring("Don't take the finalizer off"), Not(ContainSubstring("kubectl patch"))))
	})
}
