package v1beta1

// Condition types that the hypershift operator sets on a HostedCluster.
const (
	// HostedClusterAvailable says whether the control plane serves. While it is False the reason and message of the
	// HostedControlPlane say what is missing.
	HostedClusterAvailable = "Available"

	// HostedClusterProgressing is True while spec.release is not rolled out yet, and False with the reason Blocked when
	// something must be repaired first.
	HostedClusterProgressing = "Progressing"

	// HostedClusterDegraded is True when part of the control plane has fewer replicas than wanted.
	HostedClusterDegraded = "Degraded"

	// ValidHostedClusterConfiguration says whether the spec makes sense beyond what admission checks. While it is False
	// nothing is changed.
	ValidHostedClusterConfiguration = "ValidConfiguration"

	// SupportedHostedCluster says whether this installation of the operator can host the cluster.
	SupportedHostedCluster = "SupportedHostedCluster"

	// ValidReleaseImage says whether the release image can be read and is of a supported version. NodePools have it too.
	ValidReleaseImage = "ValidReleaseImage"

	// ValidProxyConfiguration says whether the certificates for the proxy can be parsed and are still valid.
	ValidProxyConfiguration = "ValidProxyConfiguration"

	// PlatformCredentialsFound says whether the credentials that the platform needs exist.
	PlatformCredentialsFound = "PlatformCredentialsFound"

	// ValidOIDCConfiguration says whether the OIDC documents of the cluster are published where the cloud reads them.
	ValidOIDCConfiguration = "ValidOIDCConfiguration"

	// IgnitionEndpointAvailable says whether new machines can get their configuration. On a NodePool it is present only when
	// they cannot.
	IgnitionEndpointAvailable = "IgnitionEndpointAvailable"

	// HostedClusterHibernated is True while the hosted cluster sleeps, and False with one of the reasons below on the way there and back. It is
	// absent from a cluster that is awake. HostedControlPlanes and NodePools have it, too.
	HostedClusterHibernated = "Hibernated"

	// UnmanagedEtcdAvailable says whether the client certificate for the user's etcd is complete.
	UnmanagedEtcdAvailable = "UnmanagedEtcdAvailable"

	// ReconciliationActive is False while spec.pausedUntil stops the operators.
	ReconciliationActive = "ReconciliationActive"

	// ReconciliationSucceeded says whether the last pass ended without an error; the message is the error.
	ReconciliationSucceeded = "ReconciliationSucceeded"

	// KubeVirtNodesLiveMigratable says whether every virtual machine can be migrated while it runs.
	KubeVirtNodesLiveMigratable = "KubeVirtNodesLiveMigratable"

	// ValidKubeVirtInfraNetworkPolicyRBAC says whether the credentials for an external KubeVirt cluster may read its network
	// and write NetworkPolicies.
	ValidKubeVirtInfraNetworkPolicyRBAC = "ValidKubeVirtInfraNetworkPolicyRBAC"

	// EtcdRecoveryActive is True while a failed etcd member is being replaced.
	EtcdRecoveryActive = "EtcdRecoveryActive"

	// AutoNodeEnabled is True when Karpenter is configured and completely rolled out.
	AutoNodeEnabled = "AutoNodeEnabled"

	// PublicEndpointExposed says whether the shared ingress serves the cluster to the internet.
	PublicEndpointExposed = "PublicEndpointExposed"

	// HostedClusterDestroyed is True when all that the cluster owned is gone and the grace period runs.
	HostedClusterDestroyed = "HostedClusterDestroyed"

	// ClusterSizeComputed carries the current size of the cluster as its reason.
	ClusterSizeComputed = "ClusterSizeComputed"

	// ClusterSizeTransitionPending is True while a change of size waits for its delay or for its turn.
	ClusterSizeTransitionPending = "ClusterSizeTransitionPending"

	// ClusterSizeTransitionRequired carries the size to change to as its reason.
	ClusterSizeTransitionRequired = "ClusterSizeTransitionRequired"

	// RequestServingNodesReady says whether the cluster has the nodes of its own that it asks for by annotation topology.
	RequestServingNodesReady = "RequestServingNodesReady"

	// AWSEndpointAvailable says whether every VPC endpoint for private access exists.
	AWSEndpointAvailable = "AWSEndpointAvailable"

	// AWSEndpointServiceAvailable says whether every VPC endpoint service for private access exists.
	AWSEndpointServiceAvailable = "AWSEndpointServiceAvailable"

	// GCPEndpointAvailable says whether every Private Service Connect endpoint exists.
	GCPEndpointAvailable = "GCPEndpointAvailable"

	// GCPServiceAttachmentAvailable says whether every Private Service Connect attachment exists.
	GCPServiceAttachmentAvailable = "GCPServiceAttachmentAvailable"

	// AzurePrivateLinkServiceAvailable says whether private access on Azure works from end to end.
	AzurePrivateLinkServiceAvailable = "AzurePrivateLinkServiceAvailable"

	// AzurePLSCreated says whether the Private Link service exists.
	AzurePLSCreated = "AzurePLSCreated"

	// AzureInternalLoadBalancerAvailable says whether the internal load balancer has an address.
	AzureInternalLoadBalancerAvailable = "AzureInternalLoadBalancerAvailable"

	// AzurePrivateEndpointAvailable says whether the private endpoint exists.
	AzurePrivateEndpointAvailable = "AzurePrivateEndpointAvailable"

	// AzurePrivateDNSAvailable says whether the private DNS records exist.
	AzurePrivateDNSAvailable = "AzurePrivateDNSAvailable"
)

// Condition types that the control-plane operator or the hosted-cluster config operator sets on a HostedControlPlane, and
// that the hypershift operator copies to the HostedCluster.
const (
	// EtcdAvailable says whether etcd has a quorum.
	EtcdAvailable = "EtcdAvailable"

	// KubeAPIServerAvailable says whether the kube-apiserver Deployment is available.
	KubeAPIServerAvailable = "KubeAPIServerAvailable"

	// InfrastructureReady says whether the endpoints that are to be published have addresses.
	InfrastructureReady = "InfrastructureReady"

	// ExternalDNSReachable says whether the external name of the API server resolves.
	ExternalDNSReachable = "ExternalDNSReachable"

	// ValidHostedControlPlaneConfiguration says whether the management cluster offers what the spec asks for.
	ValidHostedControlPlaneConfiguration = "ValidHostedControlPlaneConfiguration"

	// ValidReleaseInfo says whether the release has every image that was asked for.
	ValidReleaseInfo = "ValidReleaseInfo"

	// ValidIDPConfiguration says whether the identity providers can be configured.
	ValidIDPConfiguration = "ValidIDPConfiguration"

	// HostedClusterRestoredFromBackup is True when a cluster that was restored from a backup is whole again.
	HostedClusterRestoredFromBackup = "HostedClusterRestoredFromBackup"

	// NodesTrustAuthorities says, while authorities that nodes know have successors, whether every node trusts these. It is absent at other times.
	NodesTrustAuthorities = "NodesTrustAuthorities"

	// DataPlaneConnectionAvailable says whether the control plane reaches nodes through the tunnel.
	DataPlaneConnectionAvailable = "DataPlaneConnectionAvailable"

	// ControlPlaneConnectionAvailable says whether pods in the hosted cluster reach the API server.
	ControlPlaneConnectionAvailable = "ControlPlaneConnectionAvailable"

	// EtcdBackupSucceeded says how the last etcd backup went.
	EtcdBackupSucceeded = "EtcdBackupSucceeded"

	// ConfigOperatorReconciliationSucceeded says whether the last pass of the hosted-cluster config operator ended without
	// an error.
	ConfigOperatorReconciliationSucceeded = "ConfigOperatorReconciliationSucceeded"

	// ClusterVersionSucceeding is the reverse of Failing of the hosted cluster's ClusterVersion.
	ClusterVersionSucceeding = "ClusterVersionSucceeding"

	// ClusterVersionProgressing says whether the hosted cluster moves to another release.
	ClusterVersionProgressing = "ClusterVersionProgressing"

	// ClusterVersionReleaseAccepted says whether the hosted cluster accepted the release.
	ClusterVersionReleaseAccepted = "ClusterVersionReleaseAccepted"

	// ClusterVersionUpgradeable says whether the hosted cluster may move to the next minor version.
	ClusterVersionUpgradeable = "ClusterVersionUpgradeable"

	// ClusterVersionAvailable says whether the hosted cluster has been rolled out once.
	ClusterVersionAvailable = "ClusterVersionAvailable"

	// ClusterVersionRetrievedUpdates says whether the update service answered.
	ClusterVersionRetrievedUpdates = "ClusterVersionRetrievedUpdates"

	// AWSDefaultSecurityGroupCreated says whether the default security group of workers exists.
	AWSDefaultSecurityGroupCreated = "AWSDefaultSecurityGroupCreated"

	// AWSDefaultSecurityGroupDeleted says whether the default security group of workers is gone. It appears during deletion
	// only.
	AWSDefaultSecurityGroupDeleted = "AWSDefaultSecurityGroupDeleted"

	// CloudResourcesDestroyed says whether what the hosted cluster made in the cloud is gone. It appears during deletion
	// only.
	CloudResourcesDestroyed = "CloudResourcesDestroyed"

	// ValidAWSIdentityProvider says whether AWS accepts tokens of the cluster.
	ValidAWSIdentityProvider = "ValidAWSIdentityProvider"

	// ValidAWSKMSConfig says whether the control plane can use the AWS key.
	ValidAWSKMSConfig = "ValidAWSKMSConfig"

	// ValidAzureKMSConfig says whether the control plane can use the Azure key.
	ValidAzureKMSConfig = "ValidAzureKMSConfig"

	// ValidKubeVirtInfraNetworkMTU says whether the network of the KubeVirt cluster leaves room for a nested one.
	ValidKubeVirtInfraNetworkMTU = "ValidKubeVirtInfraNetworkMTU"

	// EtcdDataEncryptionUpToDate says whether all data is encrypted with the active key.
	EtcdDataEncryptionUpToDate = "EtcdDataEncryptionUpToDate"

	// ValidGCPCredentials says whether GCP accepts the credentials.
	ValidGCPCredentials = "ValidGCPCredentials"

	// ValidGCPWorkloadIdentity says whether GCP accepts tokens of the cluster.
	ValidGCPWorkloadIdentity = "ValidGCPWorkloadIdentity"
)

// Condition types of a HostedControlPlane that stay there.
const (
	// HostedControlPlaneAvailable says whether the control plane serves.
	HostedControlPlaneAvailable = "Available"

	// HostedControlPlaneDegraded is True when part of the control plane has fewer replicas than wanted.
	HostedControlPlaneDegraded = "Degraded"

	// EtcdSnapshotRestored says whether etcd started from the snapshot that the spec names.
	EtcdSnapshotRestored = "EtcdSnapshotRestored"

	// CVOScaledDown says whether the cluster version operator has been stopped, as deletion needs it.
	CVOScaledDown = "CVOScaledDown"

	// ClusterVersionFailing is Failing of the hosted cluster's ClusterVersion.
	ClusterVersionFailing = "ClusterVersionFailing"

	// IgnitionServerValidReleaseInfo says whether the release has every image that the ignition server needs.
	IgnitionServerValidReleaseInfo = "IgnitionServerValidReleaseInfo"
)

// Condition types of a ControlPlaneComponent.
const (
	// ControlPlaneComponentAvailable says whether the component serves.
	ControlPlaneComponentAvailable = "Available"

	// ControlPlaneComponentRolloutComplete says whether every replica runs what is wanted.
	ControlPlaneComponentRolloutComplete = "RolloutComplete"
)

// Reasons of HostedClusterHibernated, in the order in which a cluster goes through them.
const (
	// WorkersStoppingReason means that machines are being removed.
	WorkersStoppingReason = "WorkersStopping"
	// FallingAsleepReason means that the control plane is being stopped.
	FallingAsleepReason = "FallingAsleep"
	// AsleepReason means that only the operators of the cluster are running.
	AsleepReason = "Asleep"
	// WakingReason means that the control plane is starting.
	WakingReason = "Waking"
	// InvalidHibernateValueReason means that the annotation can't be read, and is ignored.
	InvalidHibernateValueReason = "InvalidValue"
)
