package v1beta1

// AllIsWellMessage is the message of a condition that has nothing to report.
const AllIsWellMessage = "All is well"

// Reasons that conditions of several types use.
const (
	// StatusUnknownReason means that the finding could not be made.
	StatusUnknownReason = "StatusUnknown"

	// AsExpectedReason means that all is well.
	AsExpectedReason = "AsExpected"

	// NotFoundReason means that the object in question does not exist.
	NotFoundReason = "NotFound"

	// WaitingForAvailableReason means that a workload or an endpoint is not available yet.
	WaitingForAvailableReason = "WaitingForAvailable"

	// NodesLackAuthoritiesReason means that some nodes don't trust the successor of an authority yet.
	NodesLackAuthoritiesReason = "NodesLackAuthorities"

	// SecretNotFoundReason means that a Secret that the spec names does not exist.
	SecretNotFoundReason = "SecretNotFound"

	// WaitingForGracePeriodReason means that deletion waits for the grace period.
	WaitingForGracePeriodReason = "WaitingForGracePeriod"

	// BlockedReason means that something must be repaired first.
	BlockedReason = "Blocked"

	// ProgressingReason means that a rollout is under way.
	ProgressingReason = "Progressing"

	// InfraStatusFailureReason means that the state of the published endpoints could not be read.
	InfraStatusFailureReason = "InfraStatusFailure"

	// WaitingOnInfrastructureReadyReason means that a published endpoint has no address yet.
	WaitingOnInfrastructureReadyReason = "WaitingOnInfrastructureReady"

	// InvalidConfigurationReason means that the spec does not make sense; the message says why.
	InvalidConfigurationReason = "InvalidConfiguration"

	// UnsupportedHostedClusterReason means that this installation of the operator cannot host the cluster.
	UnsupportedHostedClusterReason = "UnsupportedHostedCluster"

	// InsufficientClusterCapabilitiesReason means that the management cluster lacks what the spec asks for.
	InsufficientClusterCapabilitiesReason = "InsufficientClusterCapabilities"

	// ReconciliationPausedReason means that spec.pausedUntil stops the operators.
	ReconciliationPausedReason = "ReconciliationPaused"

	// InvalidPausedUntilValueReason means that spec.pausedUntil cannot be parsed and is ignored.
	InvalidPausedUntilValueReason = "InvalidPausedUntilValue"

	// ReconciliationSucceededReason means that the last pass ended without an error. The missing letter is part of the wire
	// format.
	ReconciliationSucceededReason = "ReconciliatonSucceeded"

	// ReconciliationErrorReason means that the last pass ended with an error.
	ReconciliationErrorReason = "ReconciliationError"

	// ReconcileErrorReason means that the last pass of the hosted-cluster config operator ended with an error.
	ReconcileErrorReason = "ReconcileError"
)

// Reasons that say why the control plane is not available.
const (
	// KubeconfigWaitingForCreateReason means that the administrator's kubeconfig does not exist yet.
	KubeconfigWaitingForCreateReason = "KubeconfigWaitingForCreate"

	// KASLoadBalancerNotReachableReason means that the published API server does not answer.
	KASLoadBalancerNotReachableReason = "KASLoadBalancerNotReachable"

	// ControlPlaneComponentsNotAvailableReason means that some components are not available; the message lists them.
	ControlPlaneComponentsNotAvailableReason = "ControlPlaneComponentsNotAvailable"

	// ComponentsNotAvailableReason means the same in conditions of older operators.
	ComponentsNotAvailableReason = "ComponentsNotAvailable"

	// UnavailableReplicasReason means that some workloads have fewer replicas than wanted; the message lists them.
	UnavailableReplicasReason = "UnavailableReplicas"
)

// Reasons of ControlPlaneComponent conditions.
const (
	// WaitingForDependenciesReason means that components that this one needs are not rolled out yet; the message lists them.
	WaitingForDependenciesReason = "WaitingForDependencies"

	// WaitingForRolloutCompleteReason means that not every replica runs what is wanted.
	WaitingForRolloutCompleteReason = "WaitingForRolloutComplete"

	// WaitingForOperandsReason means that what the component manages is not rolled out yet.
	WaitingForOperandsReason = "WaitingForOperands"

	// JobActiveReason means that the job runs.
	JobActiveReason = "JobActive"

	// JobCompleteReason means that the job has ended well.
	JobCompleteReason = "JobComplete"

	// JobFailedReason means that the job has failed.
	JobFailedReason = "JobFailed"

	// UnknownReason means that the job tells nothing.
	UnknownReason = "Unknown"
)

// Reasons about releases, etcd, versions and backups.
const (
	// InvalidImageReason means that the release image is not a release, or not of a supported version.
	InvalidImageReason = "InvalidImage"

	// PayloadArchNotFoundReason means that the architecture of the release could not be found out.
	PayloadArchNotFoundReason = "PayloadArchNotFound"

	// MissingReleaseImagesReason means that the release lacks images that were asked for; the message lists them.
	MissingReleaseImagesReason = "MissingReleaseImages"

	// EtcdQuorumAvailableReason means that etcd has a quorum.
	EtcdQuorumAvailableReason = "QuorumAvailable"

	// EtcdWaitingForQuorumReason means that too few members of etcd are ready.
	EtcdWaitingForQuorumReason = "EtcdWaitingForQuorum"

	// EtcdDatabaseFullReason means that the database of an etcd has grown to its quota, so that etcd refuses writes.
	EtcdDatabaseFullReason = "EtcdDatabaseFull"

	// EtcdStatefulSetNotFoundReason means that the StatefulSet of etcd does not exist.
	EtcdStatefulSetNotFoundReason = "StatefulSetNotFound"

	// UnmanagedEtcdAsExpectedReason means that the client certificate for the user's etcd is complete.
	UnmanagedEtcdAsExpectedReason = "UnmanagedEtcdAsExpected"

	// UnmanagedEtcdMisconfiguredReason means that the client certificate for the user's etcd is missing or lacks keys.
	UnmanagedEtcdMisconfiguredReason = "UnmanagedEtcdMisconfigured"

	// EtcdRecoveryJobFailedReason means that a failed etcd member could not be replaced; a person must look.
	EtcdRecoveryJobFailedReason = "EtcdRecoveryJobFailed"

	// FromClusterVersionReason means that the hosted cluster's ClusterVersion gives no reason.
	FromClusterVersionReason = "FromClusterVersion"

	// RecoveryFinishedReason means that a restored cluster is whole again.
	RecoveryFinishedReason = "RecoveryFinished"

	// BackupSucceededReason means that the last backup ended well.
	BackupSucceededReason = "BackupSucceeded"

	// BackupFailedReason means that the last backup failed.
	BackupFailedReason = "BackupFailed"

	// BackupInProgressReason means that a backup runs.
	BackupInProgressReason = "BackupInProgress"

	// BackupRejectedReason means that a backup was not started, as another one runs.
	BackupRejectedReason = "BackupRejected"

	// BackupReadBackReason means that all files of a backup were read back and compared when they had been written.
	BackupReadBackReason = "BackupReadBack"

	// BackupRestorableReason means that a backup was read from its storage later, and etcd's data could be restored from it.
	BackupRestorableReason = "BackupRestorable"

	// BackupNotReadBackReason means that nobody has read a backup yet: the credentials may only write.
	BackupNotReadBackReason = "BackupNotReadBack"

	// BackupUnreadableReason means that a backup could not be read or restored.
	BackupUnreadableReason = "BackupUnreadable"

	// BackupScheduledReason means that a schedule waits for its next time.
	BackupScheduledReason = "BackupScheduled"

	// InvalidScheduleReason means that the annotations of a schedule can't be read.
	InvalidScheduleReason = "InvalidSchedule"

	// EtcdUnhealthyReason means that a backup was not started, as etcd is not healthy.
	EtcdUnhealthyReason = "EtcdUnhealthy"
)

// Reasons about encryption at rest.
const (
	// EncryptionReadOnlyRolloutInProgressReason means that API servers learn to read with the new key.
	EncryptionReadOnlyRolloutInProgressReason = "ReadOnlyRolloutInProgress"

	// EncryptionWritePromotionInProgressReason means that API servers learn to write with the new key.
	EncryptionWritePromotionInProgressReason = "WritePromotionInProgress"

	// ReEncryptionInProgressReason means that old data is being written again.
	ReEncryptionInProgressReason = "ReEncryptionInProgress"

	// ReEncryptionCompletedReason means that all data is encrypted with the new key.
	ReEncryptionCompletedReason = "ReEncryptionCompleted"

	// ReEncryptionFailedReason means that old data could not be written again.
	ReEncryptionFailedReason = "ReEncryptionFailed"

	// ReEncryptionWaitingForKASConvergenceReason means that not every API server has the new configuration yet.
	ReEncryptionWaitingForKASConvergenceReason = "ReEncryptionWaitingForKASConvergence"
)

// Reasons about the network and the connections of a cluster.
const (
	// ExternalDNSHostNotReachableReason means that the external name of the API server does not resolve.
	ExternalDNSHostNotReachableReason = "ExternalDNSHostNotReachable"

	// ProxyCABundleInvalidReason means that the certificates for the proxy cannot be parsed or have expired.
	ProxyCABundleInvalidReason = "ProxyCABundleInvalid"

	// KonnectivityAgentPodsNotFoundReason means that no agent of the tunnel runs.
	KonnectivityAgentPodsNotFoundReason = "KonnectivityAgentPodsNotFound"

	// LogsAccessFailedReason means that logs of the agents of the tunnel could not be read.
	LogsAccessFailedReason = "LogsAccessFailed"

	// NoWorkerNodesAvailableReason means that there are no workers to find out from.
	NoWorkerNodesAvailableReason = "NoWorkerNodesAvailable"

	// KASAccessFailedReason means that the prober could not reach the API server.
	KASAccessFailedReason = "KASAccessFailed"

	// ConnectionCheckStaleReason means that the prober has not reported for five minutes.
	ConnectionCheckStaleReason = "ConnectionCheckStale"

	// ConfigMapNotFoundReason means that the prober has not reported yet.
	ConfigMapNotFoundReason = "ConfigMapNotFound"

	// SharedIngressConfiguredReason means that the shared ingress serves the cluster.
	SharedIngressConfiguredReason = "SharedIngressConfigured"

	// TopologyPrivateReason means that the cluster is not to be served to the internet.
	TopologyPrivateReason = "TopologyPrivate"

	// ConvergenceInProgressReason means that the shared ingress does not serve the cluster yet.
	ConvergenceInProgressReason = "ConvergenceInProgress"
)

// Reasons about platforms.
const (
	// PlatformCredentialsNotFoundReason means that credentials are missing or the cloud does not take them.
	PlatformCredentialsNotFoundReason = "PlatformCredentialsNotFound"

	// OIDCConfigurationInvalidReason means that the OIDC documents could not be published.
	OIDCConfigurationInvalidReason = "OIDCConfigurationInvalid"

	// InvalidIdentityProviderReason means that AWS does not accept tokens of the cluster.
	InvalidIdentityProviderReason = "InvalidIdentityProvider"

	// InvalidIAMRoleReason means that a role cannot be assumed or may not do enough.
	InvalidIAMRoleReason = "InvalidIAMRole"

	// InvalidAzureCredentialsReason means that Azure does not accept the credentials.
	InvalidAzureCredentialsReason = "InvalidAzureCredentials"

	// AWSSuccessReason means that AWS did what was asked for.
	AWSSuccessReason = "AWSSuccess"

	// AWSErrorReason means that AWS refused.
	AWSErrorReason = "AWSError"

	// AzureSuccessReason means that Azure did what was asked for.
	AzureSuccessReason = "AzureSuccess"

	// AzureErrorReason means that Azure refused.
	AzureErrorReason = "AzureError"

	// GCPSuccessReason means that GCP did what was asked for.
	GCPSuccessReason = "GCPSuccess"

	// GCPErrorReason means that GCP refused.
	GCPErrorReason = "GCPError"

	// KubeVirtSuboptimalMTUReason means that the network of the KubeVirt cluster leaves too little room for a nested one.
	KubeVirtSuboptimalMTUReason = "KubeVirtSuboptimalMTUDetected"

	// KubeVirtNodesNotLiveMigratableReason means that some virtual machines cannot be migrated while they run.
	KubeVirtNodesNotLiveMigratableReason = "KubeVirtNodesNotLiveMigratable"

	// InfraClusterNetworkReadFailedReason means that the credentials may not read the network of the KubeVirt cluster.
	InfraClusterNetworkReadFailedReason = "InfraClusterNetworkReadFailed"

	// InfraClusterNetworkPolicyCreateFailedReason means that the credentials may not write NetworkPolicies in the KubeVirt
	// cluster.
	InfraClusterNetworkPolicyCreateFailedReason = "InfraClusterNetworkPolicyCreateFailed"

	// CloudResourcesCleanupSkippedReason means that resources in the cloud could not be removed, as the hosted API does not
	// answer.
	CloudResourcesCleanupSkippedReason = "CloudResourcesCleanupSkipped"

	// CloudResourcesDeletionTimedOutReason means that removing resources in the cloud made no progress for too long.
	CloudResourcesDeletionTimedOutReason = "CloudResourcesDeletionTimedOut"

	// RemainingCloudResourcesReason means that resources in the cloud are still there; the message lists them.
	RemainingCloudResourcesReason = "RemainingCloudResources"

	// AutoNodeProgressingReason means that Karpenter is being rolled out.
	AutoNodeProgressingReason = "AutoNodeProgressing"

	// AutoNodeNotConfiguredReason means that Karpenter is not asked for.
	AutoNodeNotConfiguredReason = "AutoNodeNotConfigured"

	// AutoNodeEvaluationFailedReason means that the state of Karpenter could not be read.
	AutoNodeEvaluationFailedReason = "AutoNodeEvaluationFailed"

	// IDPConfigurationValidReason means that the OAuth server asks all identity providers of spec.configuration.oauth.
	IDPConfigurationValidReason = "IDPConfigurationValid"

	// IDPConfigurationErrorReason means that it leaves some out; the message says which, and why.
	IDPConfigurationErrorReason = "IDPConfigurationError"
)
