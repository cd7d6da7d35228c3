package why

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/kube/rollup"
)

// badWhenTrue are conditions that tell of trouble when they are True.
var badWhenTrue = []string{
	hyperv1.HostedClusterDegraded, hyperv1.EtcdRecoveryActive, hyperv1.ClusterVersionFailing, hyperv1.PrivateCAPIMigrationDegraded,
	hyperv1.NodePoolClusterNetworkCIDRConflictType, hyperv1.NodePoolAWSResourceTagConflictConditionType, hyperv1.NodePoolUnrequestedRolloutConditionType,
	packagesv1.ConditionInvalid, packagesv1.ConditionRemovalHeld, packagesv1.ConditionDeleting, upgrades.Returned, rollup.Stalled,
}

// neutral are conditions that tell what is going on, or what is wanted, and of no trouble.
var neutral = []string{
	rollup.Reconciling, hyperv1.HostedClusterProgressing, hyperv1.ClusterVersionProgressing, hyperv1.ClusterVersionUpgradeable, hyperv1.ClusterVersionRetrievedUpdates, hyperv1.AutoNodeEnabled,
	hyperv1.PublicEndpointExposed, hyperv1.PrivateCAPITypes, hyperv1.PrivateCAPIMigrationProgressing, hyperv1.ClusterSizeComputed, hyperv1.ClusterSizeTransitionPending,
	hyperv1.ClusterSizeTransitionRequired, hyperv1.AllFieldsHeeded, hyperv1.EtcdDataEncryptionUpToDate,
	hyperv1.NodePoolUpdatingVersionConditionType, hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType,
	hyperv1.NodePoolAutoscalingEnabledConditionType, hyperv1.NodePoolAutorepairEnabledConditionType, hyperv1.NodePoolUpdateManagementEnabledConditionType,
	packagesv1.ConditionPaused, packagesv1.ConditionInTransition, packagesv1.ConditionHasPausedPackage, packagesv1.ConditionEnvironmentOutdated, packagesv1.ConditionArchived,
	packagesv1.ConditionSucceeded,
}

// Good tells of a condition of a HostedCluster, NodePool, Package or HostedClusterPackage whether its status is good. It does not count where it is
// Unknown, tells of no trouble, or was mapped from an object of a package.
func Good(conditionType string, status metav1.ConditionStatus) (good, counts bool) {
	switch {
	case status == "":
		return true, true // it went
	case status == unknown, slices.Contains(neutral, conditionType), strings.Contains(conditionType, "/"):
		return false, false
	case slices.Contains(badWhenTrue, conditionType):
		return status == no, true
	}
	return status == yes, true
}
