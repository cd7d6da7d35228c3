package v1beta1

// AllIsWellMessage is the message of a condition that has nothing to report.
const AllIsWellMessage = "All is well"

// Reasons that conditions of several types use.
const (
	// StatusUnknownReason means that the status could not be determined.
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

	// ProgressingReason means that a rollout is in progress.
	ProgressingReason = "Progressing"

	// InfraStatusFailureReason means that the state of the published endpoints could not be read.
	InfraStatusFailureReason = "InfraStatusFailure"

	// WaitingOnInfrastructureReadyReason means that a published endpoint has no address yet.
	WaitingOnInfrastructureReadyReason = "WaitingOnInfrastructureReady"

	// InvalidConfigurationReason means that the spec is invalid; the message says why.
	InvalidConfigurationReason = "InvalidConfiguration"

	// UnsupportedHostedClusterReason means that this installation of the operator cannot host the cluster.
	UnsupportedHostedClusterReason = "UnsupportedHostedCluster"

	// InsufficientClusterCapabilitiesReason means that the management cluster lacks what the spec requires.
	InsufficientClusterCapabilitiesReason = "InsufficientClusterCapabilities"

	// ReconciliationPausedReason means that spec.pausedUntil stops the operators.
	ReconciliationPausedReason = "ReconciliationPaused"

	// InvalidPausedUntilValueReason means that spec.pausedUntil cannot be parsed and is ignored.
	InvalidPausedUntilValueReason = "InvalidPausedUntilValue"

	// ReconciliationSucceededReason means that the last pass ended without an error. The missing letter is part of the wire
	// format.
	ReconciliationSucceededReason = "ReconciliatonSucceeded"

	// ReconciliationErrorReason means that the last reconciliation failed.
	ReconciliationErrorReason = "ReconciliationError"

	// ReconcileErrorReason means that the last reconciliation of the hosted-cluster-config-operator failed.
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
	// WaitingForDependenciesReason means that components that this one depends on are not rolled out yet; the message lists them.
	WaitingForDependenciesReason = "WaitingForDependencies"

	// WaitingForRolloutCompleteReason means that not every replica runs the wanted version and configuration.
	WaitingForRolloutCompleteReason = "WaitingForRolloutComplete"

	// WaitingForOperandsReason means that the objects that the component manages are not rolled out yet.
	WaitingForOperandsReason = "WaitingForOperands"

	// JobActiveReason means that the job runs.
	JobActiveReason = "JobActive"

	// JobCompleteReason means that the job has succeeded.
	JobCompleteReason = "JobComplete"

	// JobFailedReason means that the job has failed.
	JobFailedReason = "JobFailed"

	// UnknownReason means that the job reports nothing.
	UnknownReason = "Unknown"
)

// Reasons about releases, etcd, versions and backups.
const (
	// InvalidImageReason means that the release image is not a release, or not of a supported version.
	InvalidImageReason = "InvalidImage"

	// PayloadArchNotFoundReason means that the architecture of the release could not be determined.
	PayloadArchNotFoundReason = "PayloadArchNotFound"

	// MissingReleaseImagesReason means that the release lacks required images; the message lists them.
	MissingReleaseImagesReason = "MissingReleaseImages"

	// EtcdQuorumAvailableReason means that etcd has a quorum.
	EtcdQuorumAvailableReason = "QuorumAvailable"

	// EtcdWaitingForQuorumReason means that too few members of etcd are ready.
	EtcdWaitingForQuorumReason = "EtcdWaitingForQuorum"

	// EtcdDatabaseFullReason means that the database of an etcd has reached its quota, so etcd refuses writes.
	EtcdDatabaseFullReason = "EtcdDatabaseFull"

	// EtcdStatefulSetNotFoundReason means that the StatefulSet of etcd does not exist.
	EtcdStatefulSetNotFoundReason = "StatefulSetNotFound"

	// UnmanagedEtcdAsExpectedReason means that the client certificate for the user's etcd is complete.
	UnmanagedEtcdAsExpectedReason = "UnmanagedEtcdAsExpected"

	// UnmanagedEtcdMisconfiguredReason means that the client certificate for the user's etcd is missing or lacks keys.
	UnmanagedEtcdMisconfiguredReason = "UnmanagedEtcdMisconfigured"

	// EtcdRecoveryJobFailedReason means that a failed etcd member could not be replaced; a person has to investigate.
	EtcdRecoveryJobFailedReason = "EtcdRecoveryJobFailed"

	// FromClusterVersionReason means that the hosted cluster's ClusterVersion gives no reason.
	FromClusterVersionReason = "FromClusterVersion"

	// RecoveryFinishedReason means that a restored cluster is complete again.
	RecoveryFinishedReason = "RecoveryFinished"

	// BackupSucceededReason means that the last backup succeeded.
	BackupSucceededReason = "BackupSucceeded"

	// BackupFailedReason means that the last backup failed.
	BackupFailedReason = "BackupFailed"

	// BackupInProgressReason means that a backup is running.
	BackupInProgressReason = "BackupInProgress"

	// BackupRejectedReason means that a backup was not started because another one is running.
	BackupRejectedReason = "BackupRejected"

	// BackupReadBackReason means that all files of a backup were read back and compared after they were written.
	BackupReadBackReason = "BackupReadBack"

	// BackupRestorableReason means that a backup was read from its storage later, and etcd's data could be restored from it.
	BackupRestorableReason = "BackupRestorable"

	// BackupNotReadBackReason means that a backup has not been read back: the credentials only permit writing.
	BackupNotReadBackReason = "BackupNotReadBack"

	// BackupUnreadableReason means that a backup could not be read or restored.
	BackupUnreadableReason = "BackupUnreadable"

	// BackupScheduledReason means that a schedule waits for its next time.
	BackupScheduledReason = "BackupScheduled"

	// InvalidScheduleReason means that the annotations of a schedule can't be read.
	InvalidScheduleReason = "InvalidSchedule"

	// EtcdUnhealthyReason means that a backup was not started because etcd is not healthy.
	EtcdUnhealthyReason = "EtcdUnhealthy"
)

// Reasons about encryption at rest.
const (
	// EncryptionReadOnlyRolloutInProgressReason means that API servers learn to read with the new key.
	EncryptionReadOnlyRolloutInProgressReason = "ReadOnlyRolloutInProgress"

	// EncryptionWritePromotionInProgressReason means that API servers learn to write with the new key.
	EncryptionWritePromotionInProgressReason = "WritePromotionInProgress"

	// ReEncryptionInProgressReason means that old data is being rewritten.
	ReEncryptionInProgressReason = "ReEncryptionInProgress"

	// ReEncryptionCompletedReason means that all data is encrypted with the new key.
	ReEncryptionCompletedReason = "ReEncryptionCompleted"

	// ReEncryptionFailedReason means that old data could not be rewritten.
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

	// NoWorkerNodesAvailableReason means that there are no workers to check from.
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
	// PlatformCredentialsNotFoundReason means that credentials are missing or the cloud does not accept them.
	PlatformCredentialsNotFoundReason = "PlatformCredentialsNotFound"

	// OIDCConfigurationInvalidReason means that the OIDC documents could not be published.
	OIDCConfigurationInvalidReason = "OIDCConfigurationInvalid"

	// InfraIDTakenReason means that another HostedCluster has the same infraID, and documents under it that would be replaced. Create the HostedCluster anew
	// with another infraID.
	InfraIDTakenReason = "InfraIDTaken"

	// InvalidIdentityProviderReason means that AWS does not accept tokens of the cluster.
	InvalidIdentityProviderReason = "InvalidIdentityProvider"

	// InvalidIAMRoleReason means that a role cannot be assumed or may not do enough.
	InvalidIAMRoleReason = "InvalidIAMRole"

	// InvalidAzureCredentialsReason means that Azure does not accept the credentials.
	InvalidAzureCredentialsReason = "InvalidAzureCredentials"

	// AWSSuccessReason means that AWS carried out the request.
	AWSSuccessReason = "AWSSuccess"

	// AWSErrorReason means that AWS refused.
	AWSErrorReason = "AWSError"

	// AzureSuccessReason means that Azure carried out the request.
	AzureSuccessReason = "AzureSuccess"

	// AzureErrorReason means that Azure refused.
	AzureErrorReason = "AzureError"

	// GCPSuccessReason means that GCP carried out the request.
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

	// CloudResourcesCleanupSkippedReason means that cloud resources could not be removed because the hosted API does not answer.
	CloudResourcesCleanupSkippedReason = "CloudResourcesCleanupSkipped"

	// CloudResourcesDeletionTimedOutReason means that the removal of cloud resources made no progress for too long.
	CloudResourcesDeletionTimedOutReason = "CloudResourcesDeletionTimedOut"

	// RemainingCloudResourcesReason means that cloud resources still exist; the message lists them.
	RemainingCloudResourcesReason = "RemainingCloudResources"

	// AutoNodeProgressingReason means that Karpenter is being rolled out.
	AutoNodeProgressingReason = "AutoNodeProgressing"

	// AutoNodeNotConfiguredReason means that Karpenter is not requested.
	AutoNodeNotConfiguredReason = "AutoNodeNotConfigured"

	// AutoNodeEvaluationFailedReason means that the state of Karpenter could not be read.
	AutoNodeEvaluationFailedReason = "AutoNodeEvaluationFailed"

	// IDPConfigurationValidReason means that the OAuth server uses all identity providers of spec.configuration.oauth.
	IDPConfigurationValidReason = "IDPConfigurationValid"

	// IDPConfigurationErrorReason means that it leaves some out; the message says which, and why.
	IDPConfigurationErrorReason = "IDPConfigurationError"
)
