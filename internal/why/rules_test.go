package why_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/kube/hotloop"
	"hcp.internal/platform/internal/why"
)

// row is a state of the world in which one rule gives the answer.
type row struct {
	rule   string
	of     why.Object
	inject func(*world)
	state  why.State
	cause  string // what the cause contains
}

// hc, hcp, np, mc and pk say a condition of the object that was asked about.
func hc(kind string, status metav1.ConditionStatus, reason, message string) func(*world) {
	return func(w *world) { w.says(kind, status, reason, message) }
}

func hcp(kind string, status metav1.ConditionStatus, reason, message string) func(*world) {
	return func(w *world) {
		w.says(hyperv1.HostedClusterAvailable, no, "Something", "see the control plane")
		w.controlPlaneSays(kind, status, reason, message)
	}
}

func np(kind string, status metav1.ConditionStatus, reason, message string) func(*world) {
	return func(w *world) { w.poolSays(kind, status, reason, message) }
}

func mc(kind string, status metav1.ConditionStatus, reason, message string) func(*world) {
	return func(w *world) { w.machineSays(kind, status, reason, message) }
}

func pk(kind string, status metav1.ConditionStatus, reason, message string) func(*world) {
	return func(w *world) { w.packageSays(kind, status, reason, message) }
}

func fl(kind string, status metav1.ConditionStatus, message string) func(*world) {
	return func(w *world) { w.fleetSays(kind, status, message) }
}

// etcdIs has etcd lose its quorum because of a pod.
func etcdIs(edit func(*corev1.Pod)) func(*world) {
	return func(w *world) {
		hcp(hyperv1.EtcdAvailable, no, hyperv1.EtcdWaitingForQuorumReason, "1 of 3")(w)
		w.down("etcd", edit)
	}
}

// unfinished has a recovery of etcd stand still: the cluster is paused, and members don't run.
func unfinished(note string) func(*world) {
	return func(w *world) {
		w.says(hyperv1.ReconciliationActive, no, hyperv1.ReconciliationPausedReason, "Reconciliation paused until field removed")
		w.says(hyperv1.HostedClusterAvailable, no, "Something", "see the control plane")
		w.controlPlaneSays(hyperv1.EtcdAvailable, no, hyperv1.EtcdWaitingForQuorumReason, "0 of 3")
		w.StatefulSets[0].Annotations["etcd.hypershift.openshift.io/quorum-recovery"] = note
	}
}

var clusterRows = []row{
	{"etcd-recovery-unfinished", demo, unfinished(`{"from":"etcd-0","replicas":3,"paused":true,"snapshot":"s3://b/1.db.enc"}`), why.Broken, "a restore in place of s3://b/1.db.enc has begun and not ended"},
	{"etcd-recovery-unfinished", demo, unfinished(`{"from":"etcd-1","replicas":3,"paused":true,"alone":true}`), why.Broken, "a recovery of StatefulSet etcd from the data of etcd-1 has begun and not ended"},
	{"etcd-recovery-unfinished", demo, unfinished(`{`), why.Broken, "a recovery of StatefulSet etcd has begun and not ended"},
	{"cluster-invalid", demo, hc(hyperv1.ValidHostedClusterConfiguration, no, "InvalidConfiguration", "spec.x: write y"), why.Broken, "spec.x: write y"},
	{"cluster-unsupported", demo, hc(hyperv1.SupportedHostedCluster, no, "Unsupported", "platform X is not installed"), why.Broken, "platform X"},
	{"release-unreadable", demo, hc(hyperv1.ValidReleaseImage, no, "InvalidImage", "spec.release.image: 404"), why.Broken, "404"},
	{"release-unreadable", demo, hc(hyperv1.ValidReleaseImage, no, "InvalidImage", "spec.release.image: dial tcp 127.0.0.1:1: connect: connection refused"), why.Broken, "connection refused"},
	{"release-incomplete", demo, hc(hyperv1.ValidReleaseInfo, no, "MissingImages", "lacks etcd"), why.Broken, "lacks etcd"},
	{"proxy-invalid", demo, hc(hyperv1.ValidProxyConfiguration, no, "ProxyCABundleInvalid", "ConfigMap ca has no PEM"), why.Broken, "ConfigMap ca"},
	{"credentials-missing", demo, hc(hyperv1.PlatformCredentialsFound, no, "NotFound", "Secret x is missing"), why.Broken, "Secret x"},
	{"control-plane-config-invalid", demo, hc(hyperv1.ValidHostedControlPlaneConfiguration, no, "Invalid", "spec.y"), why.Broken, "spec.y"},
	{"identity-provider-invalid", demo, hc(hyperv1.ValidIDPConfiguration, no, "IDP", "github has no secret"), why.Broken, "github"},
	{"oidc-invalid", demo, hc(hyperv1.ValidOIDCConfiguration, no, "OIDC", "bucket"), why.Broken, "bucket"},
	{"unmanaged-etcd-misconfigured", demo, hc(hyperv1.UnmanagedEtcdAvailable, no, "Misconfigured", "Secret etcd lacks a key"), why.Broken, "lacks a key"},
	{"upgrade-returned", demo, func(w *world) {
		w.says(upgrades.Returned, yes, upgrades.FailedReason, "the upgrade from 1.36.3 to 1.36.4 failed")
		w.says(hyperv1.HostedClusterProgressing, no, hyperv1.BlockedReason, "the upgrade from 1.36.3 to 1.36.4 failed")
	}, why.Broken, "to 1.36.4 failed"},
	{"migration-held", demo, hc(hyperv1.PrivateCAPIMigrationProgressing, no, hyperv1.MigrationRolledBackReason, "went back"), why.Broken, "went back"},
	{"cluster-unseen", demo, func(w *world) {
		w.HostedClusters[0].Status.Conditions, w.HostedClusters[0].CreationTimestamp = nil, ago(time.Hour)
		w.NodePools = nil
	}, why.Broken, "no operator has looked at it yet, though it had time"},
	{"cluster-unseen", demo, func(w *world) {
		w.HostedClusters[0].Status.Conditions, w.HostedClusters[0].CreationTimestamp = nil, ago(time.Second)
		w.NodePools = nil
	}, why.Waiting, "no operator has looked at it yet"},
	{"workload-off", demo, func(w *world) {
		for i := range w.Deployments {
			if w.Deployments[i].Name == "operator" {
				w.Deployments[i].Spec.Replicas = ptr.To(int32(0))
			}
		}
	}, why.Broken, "Deployment operator is scaled to 0"},
	{"leader-stands-still", demo, func(w *world) { w.Leases[0].Spec.RenewTime.Time = noon.Add(-time.Hour) }, why.Broken, "has stalled"},
	{"no-room", demo, hc(hyperv1.ControlPlaneAdmitted, no, "WaitingForCapacity", "needs 3 GiB"), why.Broken, "needs 3 GiB"},
	{"reconciliation-failed", demo, hc(hyperv1.ReconciliationSucceeded, no, "ReconciliationError", "something new"), why.Broken, "something new"},
	{"hot-loop", demo, func(w *world) {
		w.warn("HostedCluster", "clusters", "demo", hotloop.ReasonBegins, "goes back and forth")
	}, why.Broken, "back and forth"},
	{"cluster-degraded", demo, func(w *world) {
		w.warn("HostedCluster", "clusters", "demo", hotloop.ReasonBegins, "goes back and forth")
		w.says(hyperv1.HostedClusterDegraded, yes, "UnavailableReplicas", "x has 1")
	}, why.Broken, "x has 1"},
	{"etcd-restore-failed", demo, hc(hyperv1.EtcdSnapshotRestored, no, "Failed", "404 of the snapshot"), why.Broken, "404"},
	{"etcd-recovery-failed", demo, hc(hyperv1.EtcdRecoveryActive, no, hyperv1.EtcdRecoveryJobFailedReason, "the Job failed"), why.Broken, "the Job failed"},
	{"infrastructure-not-ready", demo, hc(hyperv1.InfrastructureReady, no, "Waiting", "no address"), why.Broken, "no address"},
	{"cluster-unavailable", demo, func(w *world) {
		isNew(w)
		w.says(hyperv1.HostedClusterAvailable, no, "Waiting", "something")
	}, why.Waiting, "something"},
	{"cluster-unavailable", demo, hc(hyperv1.HostedClusterAvailable, no, "Waiting", "something"), why.Broken, "something"},
	{"cluster-degraded", demo, hc(hyperv1.HostedClusterDegraded, yes, "UnavailableReplicas", "x has 1"), why.Broken, "x has 1"},
	{"etcd-backup-failed", demo, hc(hyperv1.EtcdBackupSucceeded, no, hyperv1.BackupFailedReason, "bucket away"), why.Broken, "bucket away"},
	{"config-operator-failed", demo, hc(hyperv1.ConfigOperatorReconciliationSucceeded, no, "Error", "refused"), why.Broken, "refused"},
	{"version-failing", demo, hc(hyperv1.ClusterVersionSucceeding, no, "Failing", "x fails"), why.Broken, "x fails"},
	{"rollout-blocked", demo, hc(hyperv1.HostedClusterProgressing, no, hyperv1.BlockedReason, "not upgradeable"), why.Broken, "not upgradeable"},
	{"tunnel-down", demo, hc(hyperv1.DataPlaneConnectionAvailable, no, "LogsAccessFailed", "no agent"), why.Broken, "no agent"},
	{"api-not-reached-from-nodes", demo, hc(hyperv1.ControlPlaneConnectionAvailable, no, "Stale", "no lease"), why.Broken, "no lease"},
	{"ignition-endpoint-down", demo, hc(hyperv1.IgnitionEndpointAvailable, no, "Waiting", "no server"), why.Broken, "no server"},
	{"dns-unresolved", demo, hc(hyperv1.ExternalDNSReachable, no, "NotReachable", "api.demo"), why.Broken, "api.demo"},
	{"cluster-restoring", demo, hc(hyperv1.HostedClusterRestoredFromBackup, no, "Restoring", "nodes"), why.Waiting, "nodes"},
	{"hibernation-invalid", demo, hc(hyperv1.HostedClusterHibernated, no, hyperv1.InvalidHibernateValueReason, "neither true nor a time"), why.Held, "neither true"},
	{"cluster-asleep", demo, func(w *world) {
		w.says(hyperv1.HostedClusterAvailable, no, hyperv1.HostedClusterHibernated, "the hosted cluster hibernates")
		w.says(hyperv1.HostedClusterHibernated, yes, hyperv1.AsleepReason, "nothing runs but the operators")
		w.controlPlaneSays(hyperv1.EtcdAvailable, no, hyperv1.HostedClusterHibernated, "the hosted cluster hibernates")
	}, why.Held, "nothing runs"},
	{"cluster-falling-asleep", demo, hc(hyperv1.HostedClusterHibernated, no, hyperv1.FallingAsleepReason, "still running: etcd"), why.Waiting, "still running"},
	{"encryption-keys-away", demo, hc(encryption.KeysAvailable, no, encryption.KeysAwayReason, "kms-plugin"), why.Broken, "kms-plugin"},
	{"nodes-lack-authorities", demo, hc(hyperv1.NodesTrustAuthorities, no, hyperv1.NodesLackAuthoritiesReason, "worker-1"), why.Waiting, "worker-1"},
	{"cluster-paused", demo, hc(hyperv1.ReconciliationActive, no, hyperv1.ReconciliationPausedReason, "paused until field removed"), why.Held, "paused until"},
	{"etcd-recovering", demo, hc(hyperv1.EtcdRecoveryActive, yes, "Active", "replacing etcd-1"), why.Waiting, "etcd-1"},
	{"migration-under-way", demo, hc(hyperv1.PrivateCAPIMigrationProgressing, yes, "Copying", "phase 3"), why.Waiting, "phase 3"},
	{"reencrypting", demo, hc(hyperv1.EtcdDataEncryptionUpToDate, no, "ReEncryption", "40 %"), why.Waiting, "40 %"},
	{"cluster-starting", demo, hc(hyperv1.HostedClusterAvailable, unknown, "Unknown", "not yet"), why.Waiting, "not yet"},
	{"cluster-rolling-out", demo, hc(hyperv1.HostedClusterProgressing, yes, "Progressing", "to 1.36.4"), why.Waiting, "1.36.4"},
	{"field-not-heeded", demo, hc(hyperv1.AllFieldsHeeded, no, hyperv1.FieldsNotHeededReason, "spec.fips"), why.Held, "spec.fips"},
}

var controlPlaneRows = []row{
	{"clock-wrong", demo, hcp(hyperv1.HostedControlPlaneDegraded, yes, "CertificatesNotReconciled", "the clock of the node"), why.Broken, "the clock"},
	{"certificates-not-reconciled", demo, hcp(hyperv1.HostedControlPlaneDegraded, yes, "CertificatesNotReconciled", "root-ca is half"), why.Broken, "root-ca"},
	{"control-plane-config-refused", demo, hcp(hyperv1.ValidHostedControlPlaneConfiguration, no, "Invalid", "spec.z"), why.Broken, "spec.z"},
	{"infrastructure-missing", demo, hcp(hyperv1.InfrastructureReady, no, hyperv1.WaitingOnInfrastructureReadyReason, "Service x has no address"), why.Broken, "Service x"},
	{"infrastructure-failed", demo, hcp(hyperv1.InfrastructureReady, no, hyperv1.InfraStatusFailureReason, "two addresses"), why.Broken, "two addresses"},
	{"etcd-full", demo, hcp(hyperv1.EtcdAvailable, no, hyperv1.EtcdDatabaseFullReason, "8 GiB"), why.Broken, "8 GiB"},
	{"etcd-no-quorum", demo, func(w *world) {
		isNew(w)
		hcp(hyperv1.EtcdAvailable, no, hyperv1.EtcdWaitingForQuorumReason, "0 of 3")(w)
	}, why.Waiting, "0 of 3"},
	{"etcd-no-quorum", demo, hcp(hyperv1.EtcdAvailable, no, hyperv1.EtcdWaitingForQuorumReason, "1 of 3"), why.Broken, "1 of 3"},
	{"api-server-down", demo, hcp(hyperv1.KubeAPIServerAvailable, no, "Waiting", "0 of 1"), why.Broken, "0 of 1"},
	{"api-address-unreachable", demo, hcp(hyperv1.HostedControlPlaneAvailable, no, hyperv1.KASLoadBalancerNotReachableReason, "10.0.0.1:6443"), why.Broken, "10.0.0.1"},
	{"components-not-available", demo, hcp(hyperv1.HostedControlPlaneAvailable, no, "ComponentsNotAvailable", "scheduler"), why.Waiting, "scheduler"},
	{"control-plane-degraded", demo, hcp(hyperv1.HostedControlPlaneDegraded, yes, hyperv1.UnavailableReplicasReason, "x has 1"), why.Broken, "x has 1"},
	{"payload-failing", demo, hcp(hyperv1.ClusterVersionFailing, yes, "Failing", "operator y"), why.Broken, "operator y"},
	{"component-waits", component1, func(w *world) {
		w.componentSays("kube-controller-manager", hyperv1.ControlPlaneComponentRolloutComplete, no, "WaitingForDependencies", "Waiting for Dependencies: kube-apiserver")
	}, why.Waiting, "kube-apiserver"},
	{"component-cycle", component1, func(w *world) {
		w.componentSays("kube-controller-manager", hyperv1.ControlPlaneComponentRolloutComplete, no, "WaitingForDependencies", "Waiting for Dependencies: etcd")
		w.componentSays("etcd", hyperv1.ControlPlaneComponentRolloutComplete, no, "WaitingForDependencies", "Waiting for Dependencies: kube-controller-manager")
	}, why.Broken, "kube-controller-manager → etcd → kube-controller-manager"},
	{"component-error", component1, func(w *world) {
		w.componentSays("kube-controller-manager", hyperv1.ControlPlaneComponentRolloutComplete, no, "ReconciliationError", "something new")
	}, why.Broken, "something new"},
	{"component-unavailable", component1, func(w *world) {
		w.componentSays("kube-controller-manager", hyperv1.ControlPlaneComponentAvailable, no, "WaitingForAvailable", "0 of 1")
	}, why.Waiting, "0 of 1"},
	{"component-rolling-out", component1, func(w *world) {
		w.componentSays("kube-controller-manager", hyperv1.ControlPlaneComponentRolloutComplete, no, "WaitingForRolloutComplete", "1 of 3")
	}, why.Waiting, "1 of 3"},
}

var component1 = why.Object{Kind: "ControlPlaneComponent", Namespace: ns, Name: "kube-controller-manager"}

var workloadRows = []row{
	{"pods-refused", demo, func(w *world) {
		etcdIs(nil)(w)
		w.StatefulSets[0].Status.Replicas = 1
		w.warn("StatefulSet", ns, "etcd", "FailedCreate", `create Pod etcd-1 in StatefulSet etcd failed error: pods "etcd-1" is forbidden: exceeded quota: small`)
	}, why.Broken, "exceeded quota: small"},
	{"workload-lacks-replicas", demo, func(w *world) { w.down("operator", nil) }, why.Waiting, "0 of 1 replicas"},
	{"volume-pending", demo, func(w *world) {
		etcdIs(nil)(w)
		w.Claims[1].Status.Phase = corev1.ClaimPending
		w.warn("PersistentVolumeClaim", ns, "data-etcd-1", "ProvisioningFailed", `storageclass "fast" not found`)
	}, why.Broken, `storageclass "fast" not found`},
	{"pod-unschedulable", demo, etcdIs(fitsNowhere("no memory")), why.Broken, "no memory"},
	{"pod-invalid-image-name", demo, etcdIs(waits("InvalidImageName", "x")), why.Broken, "names an image"},
	{"pod-image-pull-back-off", demo, etcdIs(waits("ErrImagePull", "401")), why.Broken, "can't get image"},
	{"pod-create-container-config-error", demo, etcdIs(waits("CreateContainerConfigError", "secret x")), why.Broken, "secret x"},
	{"pod-create-container-error", demo, etcdIs(waits("CreateContainerError", "runtime")), why.Broken, "runtime"},
	{"pod-run-container-error", demo, etcdIs(waits("RunContainerError", "exec")), why.Broken, "exec"},
	{"pod-container-creating", demo, func(w *world) {
		etcdIs(waits("ContainerCreating", ""))(w)
		w.warn("Pod", ns, "etcd-0", "FailedMount", "MountVolume.SetUp failed")
	}, why.Broken, "MountVolume.SetUp failed"},
	{"pod-oomkilled", demo, etcdIs(crash(137, "OOMKilled")), why.Broken, "runs out of memory"},
	{"pod-crash-loop-back-off", demo, etcdIs(crash(1, "Error")), why.Broken, "exit code 1"},
	{"pod-evicted", demo, etcdIs(func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "DiskPressure on node-1"
	}), why.Broken, "DiskPressure"},
	{"pod-terminating", demo, etcdIs(func(p *corev1.Pod) { deleted(&p.ObjectMeta, 10*time.Minute) }), why.Broken, "should have terminated"},
	{"pod-image-pull-back-off", demo, func(w *world) { // the old replica serves, so that nothing is unavailable
		w.componentSays("kube-apiserver", hyperv1.ControlPlaneComponentRolloutComplete, no, "WaitingForRolloutComplete", "of 1 replicas, 1 is up to date")
		w.pod(ns, "kube-apiserver-y", "kube-apiserver")
		waits("ImagePullBackOff", "Back-off")(&w.Pods[len(w.Pods)-1])
		for i := range w.Deployments {
			if w.Deployments[i].Name == "kube-apiserver" {
				w.Deployments[i].Status.Replicas = 2
			}
		}
	}, why.Broken, "can't get image"},
	{"pod-starting", demo, etcdIs(func(p *corev1.Pod) { p.Status.Phase, p.CreationTimestamp = corev1.PodPending, ago(time.Minute) }), why.Waiting, "etcd-0 is starting"},
	{"pod-not-ready", demo, etcdIs(notReady), why.Broken, "runs and is not ready"},
	{"node-not-ready", demo, func(w *world) {
		etcdIs(notReady)(w)
		w.ManagementNodes[0].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Message: "Kubelet stopped posting"}
	}, why.Broken, "Kubelet stopped posting"},
	{"node-under-pressure", demo, func(w *world) {
		etcdIs(notReady)(w)
		w.ManagementNodes[0].Status.Conditions = append(w.ManagementNodes[0].Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Message: "disk is full"})
	}, why.Broken, "disk is full"},
}

var poolRows = []row{
	{"pool-without-cluster", workers, np(hyperv1.NodePoolReadyConditionType, no, "NotFound", "HostedCluster clusters/x, which spec.clusterName names, does not exist"), why.Broken, "does not exist"},
	{"pool-release-invalid", workers, np(hyperv1.NodePoolValidReleaseImageConditionType, no, "X", "404"), why.Broken, "404"},
	{"pool-version-skew", workers, np(hyperv1.NodePoolSupportedVersionSkewConditionType, no, "X", "newer"), why.Broken, "newer"},
	{"pool-config-invalid", workers, np(hyperv1.NodePoolValidMachineConfigConditionType, no, "X", "ConfigMap a"), why.Broken, "ConfigMap a"},
	{"pool-tuning-invalid", workers, np(hyperv1.NodePoolValidTuningConfigConditionType, no, "X", "ConfigMap b"), why.Broken, "ConfigMap b"},
	{"pool-platform-invalid", workers, np(hyperv1.NodePoolValidPlatformConfigConditionType, no, "X", "subnet"), why.Broken, "subnet"},
	{"pool-image-invalid", workers, np(hyperv1.NodePoolValidPlatformImageType, no, "X", "no AMI"), why.Broken, "no AMI"},
	{"pool-arch-invalid", workers, np(hyperv1.NodePoolValidArchPlatform, no, "X", "arm64"), why.Broken, "arm64"},
	{"pool-template-refused", workers, np(hyperv1.NodePoolValidMachineTemplateConditionType, no, "X", "cores"), why.Broken, "cores"},
	{"pool-payload-failed", workers, np(hyperv1.NodePoolValidGeneratedPayloadConditionType, no, "X", "kind Foo"), why.Broken, "kind Foo"},
	{"pool-update-invalid", workers, np(hyperv1.NodePoolUpdateManagementEnabledConditionType, no, "X", "maxSurge"), why.Broken, "maxSurge"},
	{"pool-autoscaling-invalid", workers, np(hyperv1.NodePoolAutoscalingEnabledConditionType, no, hyperv1.NodePoolValidationFailedReason, "min > max"), why.Broken, "min > max"},
	{"pool-rollout-unrequested", workers, np("UnrequestedRollout", yes, "X", "the operator's template"), why.Broken, "operator's template"},
	{"machine-network-conflict", workers, np(hyperv1.NodePoolClusterNetworkCIDRConflictType, yes, "X", "10.132.0.5"), why.Broken, "10.132.0.5"},
	{"pool-upgrade-failed", workers, np(hyperv1.NodePoolUpdatingConfigConditionType, no, hyperv1.NodePoolInplaceUpgradeFailedReason, "machine a"), why.Broken, "machine a"},
	{"too-many-unhealthy", workers, np(hyperv1.NodePoolReadyConditionType, no, hyperv1.NodePoolTooManyUnhealthyReason, "3 of 4"), why.Broken, "3 of 4"},
	{"ignition-not-reached", workers, np(hyperv1.NodePoolReachedIgnitionEndpoint, no, "ignitionNotReached", "https://x"), why.Broken, "https://x"},
	{"machines-not-ready", workers, np(hyperv1.NodePoolAllMachinesReadyConditionType, no, "X", "being made"), why.Waiting, "being made"},
	{"nodes-not-healthy", workers, np(hyperv1.NodePoolAllNodesHealthyConditionType, no, "X", "coming up"), why.Waiting, "coming up"},
	{"pool-updating", workers, np(hyperv1.NodePoolUpdatingVersionConditionType, yes, "X", "to 1.36.4"), why.Waiting, "1.36.4"},
	{"pool-not-ready", workers, np(hyperv1.NodePoolReadyConditionType, no, "X", "0 of 1"), why.Waiting, "0 of 1"},
	{"pool-waits-for-cluster", workers, func(w *world) { w.NodePools[0].Status.Conditions = nil }, why.Waiting, "no operator has looked"},
	{"pool-paused", workers, np(hyperv1.NodePoolReconciliationActiveConditionType, no, "Paused", "until removed"), why.Held, "until removed"},
	{"pool-field-not-heeded", workers, np(hyperv1.AllFieldsHeeded, no, "X", "spec.tuningConfig"), why.Held, "spec.tuningConfig"},
	{"machine-deployment-not-available", workers, func(w *world) {
		w.poolSays(hyperv1.NodePoolReadyConditionType, no, "X", "0 of 1")
		set(&w.MachineDeployments[0].Status.Conditions, clusterv1.AvailableCondition, no, "NotAvailable", "0 available replicas")
	}, why.Waiting, "0 available replicas"},
	{"machine-paused", machine, mc(clusterv1.PausedCondition, yes, "Paused", "annotation"), why.Held, "annotation"},
	{"infrastructure-refused", machine, mc(clusterv1.MachineInfrastructureReadyCondition, no, "X", "quota of vCPUs"), why.Broken, "quota of vCPUs"},
	{"bootstrap-not-ready", machine, mc(clusterv1.MachineBootstrapConfigReadyCondition, no, "X", "no secret"), why.Waiting, "no secret"},
	{"machine-never-joined", machine, func(w *world) {
		w.Machines[0].Status.NodeRef.Name = ""
		w.Machines[0].Status.Conditions[0].LastTransitionTime = ago(time.Hour)
	}, why.Broken, "has never joined"},
	{"machine-unhealthy", machine, mc(clusterv1.MachineHealthCheckSucceededCondition, no, "X", "unhealthy"), why.Waiting, "unhealthy"},
	{"machine-node-unhealthy", machine, mc(clusterv1.MachineNodeHealthyCondition, no, "X", "not ready"), why.Broken, "not ready"},
	{"machine-failed", machine, func(w *world) { w.Machines[0].Status.Phase = "Failed" }, why.Broken, "has failed"},
	{"machine-starting", machine, mc(clusterv1.MachineReadyCondition, no, "X", "starting"), why.Waiting, "starting"},
	{"hosted-node-not-ready", machine, hostedNode(corev1.NodeReady, corev1.ConditionFalse, "container runtime is down"), why.Broken, "container runtime is down"},
	{"hosted-node-silent", machine, hostedNode(corev1.NodeReady, corev1.ConditionUnknown, "stopped posting"), why.Broken, "stopped posting"},
	{"hosted-node-under-pressure", machine, hostedNode(corev1.NodeMemoryPressure, corev1.ConditionTrue, "memory"), why.Broken, "MemoryPressure"},
	{"request-pending", machine, func(w *world) {
		w.Machines[0].Status.NodeRef.Name = ""
		w.request("system:node:workers-a", nil)
	}, why.Broken, "nobody has approved"},
}

func hostedNode(kind corev1.NodeConditionType, status corev1.ConditionStatus, message string) func(*world) {
	return func(w *world) {
		w.machineSays(clusterv1.MachineNodeHealthyCondition, no, "X", "see the node")
		w.Hosted["clusters/demo"].Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: kind, Status: status, Message: message}}
	}
}

var packageRows = []row{
	{"package-image-unreadable", addon, pk(packagesv1.ConditionUnpacked, no, packagesv1.ReasonImagePullBackOff, "404"), why.Broken, "404"},
	{"package-invalid", addon, pk(packagesv1.ConditionInvalid, yes, packagesv1.ReasonConstraintsFailed, "platform"), why.Broken, "platform"},
	{"package-unseen", addon, func(w *world) { w.Packages[0].Status.Conditions = nil }, why.Broken, "though it had time"},
	{"package-unavailable", addon, pk(packagesv1.ConditionAvailable, no, "X", "gone"), why.Broken, "gone"},
	{"package-progressing", addon, pk(packagesv1.ConditionProgressing, yes, "X", "revision 2"), why.Waiting, "revision 2"},
	{"package-paused", addon, pk(packagesv1.ConditionPaused, yes, "Paused", "by somebody"), why.Held, "by somebody"},
	{"package-outdated", addon, pk(packagesv1.ConditionEnvironmentOutdated, yes, "X", "1.36"), why.Waiting, "1.36"},
	{"object-deployment-unavailable", addon, func(w *world) { w.revisionSays("X", ""); w.ObjectSets = nil }, why.Broken, "No ObjectSet"},
	{"object-deployment-progressing", addon, func(w *world) {
		w.packageSays(packagesv1.ConditionProgressing, yes, "X", "x")
		set(&w.ObjectDeployments[0].Status.Conditions, packagesv1.ConditionProgressing, yes, "X", "success delay")
	}, why.Waiting, "success delay"},
	{"object-deployment-paused", why.Object{Kind: "ObjectDeployment", Namespace: ns, Name: "addon"}, func(w *world) {
		set(&w.ObjectDeployments[0].Status.Conditions, packagesv1.ConditionPaused, yes, "Paused", "by its Package")
	}, why.Held, "by its Package"},
	{"object-collision", addon, func(w *world) { w.revisionSays(packagesv1.ReasonCollisionDetected, "object a/x") }, why.Broken, "object a/x"},
	{"object-refused", addon, func(w *world) { w.revisionSays(packagesv1.ReasonPreflightError, "object a/y") }, why.Broken, "object a/y"},
	{"definition-missing", addon, func(w *world) {
		w.revisionSays(packagesv1.ReasonPreflightError, `Phase "deploy", object a/y: example.com/v1, Kind=Y not registered on the api server.`)
	}, why.Broken, "Kind=Y not registered"},
	{"target-unauthorized", addon, func(w *world) { w.phaseSays(packagesv1.ReasonTargetUnauthorized, "it answers 401") }, why.Broken, "401"},
	{"target-unreachable", addon, func(w *world) { w.phaseSays(packagesv1.ReasonTargetUnreachable, "no route to it") }, why.Waiting, "no route"},
	{"target-misbehaves", addon, func(w *world) { w.phaseSays(packagesv1.ReasonTargetMisbehaves, "redirects") }, why.Broken, "redirects"},
	{"probe-failed", addon, func(w *world) { w.revisionSays(packagesv1.ReasonProbeFailure, "Deployment a/web") }, why.Broken, "Deployment a/web"},
	{"objects-in-transition", why.Object{Kind: "ObjectSet", Namespace: ns, Name: "addon-1"}, func(w *world) {
		set(&w.ObjectSets[0].Status.Conditions, packagesv1.ConditionInTransition, yes, "InTransition", "some objects")
	}, why.Waiting, "some objects"},
	{"connector-silent", why.Object{Kind: "ObjectSetPhase", Namespace: ns, Name: "addon-1-deploy"}, func(w *world) { w.ObjectSetPhases[0].Status.Conditions = nil }, why.Waiting, "has not been processed yet"},
	{"selector-invalid", fleet, func(w *world) {
		w.HostedClusterPackages[0].Spec.HostedClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	}, why.Broken, "Near"},
	{"fleet-unseen", fleet, func(w *world) { w.HostedClusterPackages[0].Generation = 2 }, why.Broken, "newest template"},
	{"rollout-waits-for-package", fleet, fl(packagesv1.ConditionProgressing, yes, "x. Unavailable, which uses up maxUnavailable 1: clusters/y."), why.Broken, "clusters/y"},
	{"package-not-writable", fleet, fl(packagesv1.ConditionProgressing, yes, "x. Can't be written, and tried again later: clusters/z (quota)."), why.Broken, "clusters/z"},
	{"rollout-paused", fleet, func(w *world) { w.HostedClusterPackages[0].Annotations[packagesv1.RolloutPausedAnnotation] = "true" }, why.Held, "the rollout is paused"},
	{"removal-held", fleet, fl(packagesv1.ConditionRemovalHeld, yes, "the selector"), why.Held, "the selector"},
	{"package-of-fleet-paused", fleet, fl(packagesv1.ConditionHasPausedPackage, yes, "1/6 packages paused."), why.Held, "1/6"},
	{"rollout-soaks", fleet, fl(packagesv1.ConditionProgressing, yes, "x. It soaks before the next one starts."), why.Held, "soaks"},
	{"rollout-returned", fleet, fl(packagesv1.ConditionProgressing, yes, "x. Failed and returned to the last good version: a."), why.Broken, "returned"},
	{"rollout-waits-for-cluster", fleet, fl(packagesv1.ConditionProgressing, yes, "x. Hosted clusters that are not Available, and come last in their group: clusters/q."), why.Held, "clusters/q"},
	{"rollout-under-way", fleet, fl(packagesv1.ConditionProgressing, yes, "1/6 packages progressed."), why.Waiting, "1/6"},
}

// textRows are errors that are known wherever they stand.
var textRows = map[string]string{
	"webhook-down":          `failed calling webhook "x"`,
	"webhook-refuses":       `admission webhook "x" denied the request: no`,
	"definition-missing":    `no matches for kind "X" in version "y/v1"`,
	"quota-exceeded":        `creating Secret x: exceeded quota: small`,
	"object-too-large":      "Request entity too large: limit is 3145728",
	"disk-full":             "write /var/lib/x: no space left on device",
	"certificate-expired":   "x509: certificate has expired or is not yet valid",
	"certificate-untrusted": "x509: certificate signed by unknown authority",
	"forbidden":             `secrets is forbidden: User "x" cannot list resource "secrets"`,
	"owned-by-other":        "namespace x belongs to another hosted cluster",
	"unknown-field":         `unknown field "spec.x"`,
	"api-overloaded":        "the server has received too many requests",
	"api-away":              "dial tcp 10.0.0.1:443: connect: connection refused",
	"lost-race":             "Operation cannot be fulfilled on x: the object has been modified",
	"answer-lost":           "unexpected EOF",
}

// leads are rules that only lead on: they never end a chain.
var leads = []string{"operator-down", "cluster-pools", "operator-of-control-plane-down", "control-plane-rolling-out", "pod-on-sick-node", "machine-api-down", "node-request-denied", "package-operator-down", "cluster-paused-shows", "cluster-hibernation-shows", "control-plane"}

func TestRules(t *testing.T) {
	rows := slices.Concat(clusterRows, controlPlaneRows, workloadRows, poolRows, packageRows, deletionRows)
	for id, text := range textRows {
		rows = append(rows, row{id, demo, hc(hyperv1.ReconciliationSucceeded, no, "ReconciliationError", text), "", text})
	}
	tried := map[string]bool{}
	for _, r := range rows {
		tried[r.rule] = true
		t.Run("When the world shows "+r.rule+" it should be the answer", func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld()
			r.inject(w)
			a := why.Explain(&w.Snapshot, r.of)
			g.Expect(a.Rule).To(Equal(r.rule), "%+v", a)
			g.Expect(a.Cause).To(ContainSubstring(r.cause))
			if r.state != "" {
				g.Expect(a.State).To(Equal(r.state))
			}
			g.Expect(a.Do).NotTo(BeEmpty())
		})
	}
	t.Run("When a recovery of etcd stands still it should say how to go on, and not to end the pause", func(t *testing.T) {
		for note, command := range map[string]string{
			`{"from":"etcd-0","snapshot":"s3://b/1.db.enc"}`: "hypershift restore --in-place --name demo --namespace clusters --from s3://b/1.db.enc --yes",
			`{"from":"etcd-1"}`: "hypershift etcd recover --name demo --namespace clusters --etcd etcd --from etcd-1 --yes",
			`{`:                 "hypershift etcd recover --from POD",
		} {
			g := NewWithT(t)
			w := newWorld()
			unfinished(note)(w)
			a := why.Explain(&w.Snapshot, demo)
			g.Expect(a.Do).To(And(ContainSubstring(command), ContainSubstring("Don't end the pause"), Not(ContainSubstring("remove spec.pausedUntil"))))
		}
	})
	t.Run("When objects have stopped to be written again and again it should be no cause any more", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld()
		w.warn("HostedCluster", "clusters", "demo", hotloop.ReasonBegins, "goes back and forth")
		g.Expect(why.Explain(&w.Snapshot, demo).Rule).To(Equal("hot-loop"))
		w.warn("HostedCluster", "clusters", "demo", hotloop.ReasonEnds, "no longer")
		w.Warnings[len(w.Warnings)-1].Type = corev1.EventTypeNormal
		g.Expect(why.Explain(&w.Snapshot, demo).State).To(Equal(why.Well))
	})
	t.Run("When a rule is added it should have a row", func(t *testing.T) {
		for _, f := range faults {
			tried[f.rule] = true
		}
		for _, id := range why.IDs() {
			NewWithT(t).Expect(tried[id] || slices.Contains(leads, id)).To(BeTrue(), "rule %s has no row in this test", id)
		}
	})
}

func TestWell(t *testing.T) {
	w := newWorld()
	for _, of := range []why.Object{demo, workers, addon, fleet, machine, component1, {Kind: "HostedControlPlane", Namespace: ns, Name: "demo"}} {
		t.Run("When nothing is wrong with "+of.Kind+" it should say so", func(t *testing.T) {
			g := NewWithT(t)
			a := why.Explain(&w.Snapshot, of)
			g.Expect(a.State).To(Equal(why.Well), "%+v", a)
			g.Expect(a.Cause).To(Equal("nothing is wrong"))
			g.Expect(a.Chain).To(BeEmpty())
		})
	}
	t.Run("When it is paused and something is broken it should tell of both, the broken thing first", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld()
		etcdIs(crash(1, "Error"))(w)
		w.says(hyperv1.ReconciliationActive, no, hyperv1.ReconciliationPausedReason, "Reconciliation paused until field removed")
		a := why.Explain(&w.Snapshot, demo)
		g.Expect(a.Rule).To(Equal("pod-crash-loop-back-off"))
		g.Expect(a.Notes).To(ContainElement(ContainSubstring("paused until field removed")))
	})
	t.Run("When the operator of a control plane is gone and no condition tells it should be found", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld()
		w.down("control-plane-operator", waits("ImagePullBackOff", ""))
		a := why.Explain(&w.Snapshot, demo)
		g.Expect(a.Rule).To(Equal("pod-image-pull-back-off"))
		g.Expect(a.Cause).To(ContainSubstring("control-plane-operator-x"))
	})
	t.Run("When a pause shows in several conditions it should be a pause, since it began", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld()
		w.says(hyperv1.ReconciliationActive, no, hyperv1.ReconciliationPausedReason, "Reconciliation paused until field removed")
		w.says(hyperv1.HostedClusterProgressing, no, hyperv1.BlockedReason, "Reconciliation paused until field removed")
		a := why.Explain(&w.Snapshot, demo)
		g.Expect(a.State).To(Equal(why.Held))
		g.Expect(a.Rule).To(Equal("cluster-paused"))
	})
	t.Run("When only the object was read it should go by what it says itself", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld()
		w.says(hyperv1.HostedClusterAvailable, no, "EtcdWaitingForQuorum", "1 of 3 members")
		a := why.Explain(&why.Snapshot{Now: noon, HostedClusters: w.HostedClusters}, demo)
		g.Expect(a.State).To(Equal(why.Broken))
		g.Expect(a.Cause).To(Equal("1 of 3 members"))
	})
	t.Run("When a text is hostile it should be one line without escapes and credentials, and bounded", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld()
		w.says(hyperv1.ReconciliationSucceeded, no, "X\x1b[2J", "a\x1b]0;x\x07\nb https://user:secret@host/ token=abc \u202egnp.exe"+strings.Repeat("y", 40000))
		a := why.Explain(&w.Snapshot, demo)
		for _, text := range append([]string{a.Cause}, a.Chain[0].Text, a.Chain[0].Field) {
			g.Expect(text).NotTo(ContainSubstring("\x1b"))
			g.Expect(text).NotTo(ContainSubstring("\n"))
			g.Expect(text).NotTo(ContainSubstring("\u202e"))
			g.Expect(text).NotTo(ContainSubstring("secret"))
			g.Expect(text).NotTo(ContainSubstring("abc"))
			g.Expect(len(text)).To(BeNumerically("<", 500))
		}
	})
	t.Run("When the snapshot is in another order the answer should be the same", func(t *testing.T) {
		g := NewWithT(t)
		build := func() *world {
			w := newWorld()
			etcdIs(crash(1, "Error"))(w)
			w.down("kube-apiserver", crash(2, "Error"))
			for i := range w.Pods {
				if w.Pods[i].Name == "etcd-2" {
					w.Pods[i].Status.Conditions[0].Status = corev1.ConditionFalse
					crash(3, "Error")(&w.Pods[i])
				}
			}
			return w
		}
		one, other := build(), build()
		slices.Reverse(other.Pods)
		slices.Reverse(other.Deployments)
		slices.Reverse(other.Components)
		g.Expect(why.Explain(&one.Snapshot, demo)).To(Equal(why.Explain(&other.Snapshot, demo)))
	})
	t.Run("When there are very many objects it should end, with a chain that is short", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld()
		for i := range 3000 {
			w.pod(ns, "etcd-"+strings.Repeat("x", i%50)+string(rune('a'+i%26)), "etcd")
		}
		etcdIs(crash(1, "Error"))(w)
		a := why.Explain(&w.Snapshot, demo)
		g.Expect(a.State).To(Equal(why.Broken))
		g.Expect(len(a.Chain)).To(BeNumerically("<=", why.MaxLinks))
	})
}
