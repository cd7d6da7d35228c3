package v1beta1

// Condition types of a NodePool; ValidReleaseImage, IgnitionEndpointAvailable, ReconciliationActive and
// KubeVirtNodesLiveMigratable are shared with HostedCluster and are repeated here under names of their own.
const (
	// NodePoolValidReleaseImageConditionType says whether the release image can be read and its version goes with that of
	// the HostedCluster.
	NodePoolValidReleaseImageConditionType = "ValidReleaseImage"

	// NodePoolValidPlatformImageType says whether there is a boot image for release, region and architecture.
	NodePoolValidPlatformImageType = "ValidPlatformImage"

	// NodePoolValidMachineConfigConditionType says whether what spec.config names can be used.
	NodePoolValidMachineConfigConditionType = "ValidMachineConfig"

	// NodePoolValidTuningConfigConditionType says whether what spec.tuningConfig names can be used.
	NodePoolValidTuningConfigConditionType = "ValidTuningConfig"

	// NodePoolValidPlatformConfigConditionType says whether spec.platform makes sense beyond what admission checks.
	NodePoolValidPlatformConfigConditionType = "ValidPlatformConfig"

	// NodePoolValidArchPlatform says whether platform and release support the architecture.
	NodePoolValidArchPlatform = "ValidArchPlatform"

	// NodePoolValidGeneratedPayloadConditionType says whether the ignition server made a configuration for the pool.
	NodePoolValidGeneratedPayloadConditionType = "ValidGeneratedPayload"

	// NodePoolValidMachineTemplateConditionType says whether a machine template can be built.
	NodePoolValidMachineTemplateConditionType = "ValidMachineTemplate"

	// NodePoolSupportedVersionSkewConditionType says whether the release is close enough to that of the HostedCluster. It
	// never blocks.
	NodePoolSupportedVersionSkewConditionType = "SupportedVersionSkew"

	// NodePoolAutoscalingEnabledConditionType is True when the cluster autoscaler sets the size.
	NodePoolAutoscalingEnabledConditionType = "AutoscalingEnabled"

	// NodePoolUpdateManagementEnabledConditionType says whether spec.management makes sense.
	NodePoolUpdateManagementEnabledConditionType = "UpdateManagementEnabled"

	// NodePoolAutorepairEnabledConditionType is True when unhealthy machines are replaced.
	NodePoolAutorepairEnabledConditionType = "AutorepairEnabled"

	// NodePoolReachedIgnitionEndpoint is True when at least one machine fetched its configuration.
	NodePoolReachedIgnitionEndpoint = "ReachedIgnitionEndpoint"

	// NodePoolUpdatingVersionConditionType is True while a release is being rolled out.
	NodePoolUpdatingVersionConditionType = "UpdatingVersion"

	// NodePoolUpdatingConfigConditionType is True while a configuration is being rolled out.
	NodePoolUpdatingConfigConditionType = "UpdatingConfig"

	// NodePoolUpdatingPlatformMachineTemplateConditionType is True while a machine template is being rolled out.
	NodePoolUpdatingPlatformMachineTemplateConditionType = "UpdatingPlatformMachineTemplate"

	// NodePoolReadyConditionType says whether as many machines as wanted are ready.
	NodePoolReadyConditionType = "Ready"

	// NodePoolAllMachinesReadyConditionType says whether every machine runs.
	NodePoolAllMachinesReadyConditionType = "AllMachinesReady"

	// NodePoolAllNodesHealthyConditionType says whether every node is healthy.
	NodePoolAllNodesHealthyConditionType = "AllNodesHealthy"

	// NodePoolReconciliationActiveConditionType is False while spec.pausedUntil stops the operators.
	NodePoolReconciliationActiveConditionType = "ReconciliationActive"

	// NodePoolAWSSecurityGroupAvailableConditionType says whether there is a security group for the machines.
	NodePoolAWSSecurityGroupAvailableConditionType = "AWSSecurityGroupAvailable"

	// NodePoolAWSResourceTagConflictConditionType is True when a tag of the HostedCluster conflicts with one of the pool.
	NodePoolAWSResourceTagConflictConditionType = "AWSResourceTagConflict"

	// NodePoolUnrequestedRolloutConditionType is True while machines would be replaced although nobody changed what they are made from, as after an upgrade of
	// the operator. Nothing is replaced before somebody allows it, by annotation NodePoolAllowRolloutAnnotation.
	NodePoolUnrequestedRolloutConditionType = "UnrequestedRollout"

	// NodePoolClusterNetworkCIDRConflictType is True when addresses of machines lie in the pod network.
	NodePoolClusterNetworkCIDRConflictType = "ClusterNetworkCIDRConflict"

	// NodePoolKubeVirtLiveMigratableType says whether every virtual machine can be migrated while it runs.
	NodePoolKubeVirtLiveMigratableType = "KubeVirtNodesLiveMigratable"

	// NodePoolPerformanceProfileAvailableConditionType is copied from the performance profile of the pool.
	NodePoolPerformanceProfileAvailableConditionType = "performance.operator.openshift.io/Available"

	// NodePoolPerformanceProfileProgressingConditionType is copied from the performance profile of the pool.
	NodePoolPerformanceProfileProgressingConditionType = "performance.operator.openshift.io/Progressing"

	// NodePoolPerformanceProfileUpgradeableConditionType is copied from the performance profile of the pool.
	NodePoolPerformanceProfileUpgradeableConditionType = "performance.operator.openshift.io/Upgradeable"

	// NodePoolPerformanceProfileDegradedConditionType is copied from the performance profile of the pool.
	NodePoolPerformanceProfileDegradedConditionType = "performance.operator.openshift.io/Degraded"
)

// Reasons of NodePool conditions that no other kind uses.
const (
	// NodePoolValidationFailedReason means that part of the spec cannot be used; the message says which and why.
	NodePoolValidationFailedReason = "ValidationFailed"

	// NodePoolInplaceUpgradeFailedReason means that a machine could not be changed in place.
	NodePoolInplaceUpgradeFailedReason = "InplaceUpgradeFailed"

	// NodePoolNotFoundReason means that there are no machines.
	NodePoolNotFoundReason = "NotFound"

	// NodePoolFailedToGetReason means that an object could not be read.
	NodePoolFailedToGetReason = "FailedToGet"

	// NodePoolInvalidConfigReason means that the ignition server could not use the configuration.
	NodePoolInvalidConfigReason = "InvalidConfig"

	// NodePoolUnsupportedSkewReason means that the release is too far from that of the HostedCluster.
	NodePoolUnsupportedSkewReason = "UnsupportedSkew"

	// NodePoolInvalidArchPlatformReason means that platform or release do not support the architecture.
	NodePoolInvalidArchPlatformReason = "InvalidArchPlatform"

	// NodePoolIgnitionNotReachedReason means that no machine fetched its configuration yet. It starts in lower case on the
	// wire.
	NodePoolIgnitionNotReachedReason = "ignitionNotReached"

	// NodePoolIgnitionEndpointMissingReason means that the HostedCluster has no ignition endpoint yet.
	NodePoolIgnitionEndpointMissingReason = "IgnitionEndpointMissing"

	// NodePoolIgnitionCACertMissingReason means that the certificate of the ignition server is not there yet.
	NodePoolIgnitionCACertMissingReason = "IgnitionCACertMissing"

	// NodePoolTooManyUnhealthyReason means that too many machines are unhealthy, so none is replaced.
	NodePoolTooManyUnhealthyReason = "TooManyUnhealthy"

	// NodePoolReconciliationActiveReason means that nothing stops the operators.
	NodePoolReconciliationActiveReason = "ReconciliationActive"

	// NodePoolDefaultSGNotReadyReason means that the default security group does not exist yet.
	NodePoolDefaultSGNotReadyReason = "DefaultSGNotReady"

	// NodePoolTagConflictDetectedReason means that a tag of the HostedCluster conflicts with one of the pool.
	NodePoolTagConflictDetectedReason = "TagConflictDetected"

	// NodePoolNoTagConflictReason means that no tags conflict.
	NodePoolNoTagConflictReason = "NoTagConflict"

	// InvalidKubevirtMachineTemplateReason means that a KubeVirt machine template cannot be built.
	InvalidKubevirtMachineTemplateReason = "InvalidKubevirtMachineTemplate"

	// InvalidOpenStackMachineTemplateReason means that an OpenStack machine template cannot be built.
	InvalidOpenStackMachineTemplateReason = "InvalidOpenStackMachineTemplate"

	// CIDRConflictReason is reserved; conflicts are reported as InvalidConfiguration.
	CIDRConflictReason = "CIDRConflict"
)
