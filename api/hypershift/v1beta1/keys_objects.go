package v1beta1

// Finalizers.
const (
	// HostedClusterFinalizer keeps a HostedCluster until what it owns is gone.
	HostedClusterFinalizer = "hypershift.openshift.io/finalizer"

	// NodePoolFinalizer keeps a NodePool until its machines are gone.
	NodePoolFinalizer = "hypershift.openshift.io/finalizer"

	// HostedControlPlaneFinalizer keeps a HostedControlPlane until the control-plane operator has cleaned up.
	HostedControlPlaneFinalizer = "hypershift.openshift.io/finalizer"

	// KarpenterFinalizer keeps a HostedControlPlane until Karpenter's machines are gone.
	KarpenterFinalizer = "hypershift.openshift.io/karpenter-finalizer"

	// AWSOIDCDiscoveryFinalizer keeps a HostedCluster until its OIDC documents are removed from the bucket.
	AWSOIDCDiscoveryFinalizer = "hypershift.io/aws-oidc-discovery"

	// ControlPlaneComponentFinalizer keeps Cluster API Deployments until the objects that they must clean up are gone.
	ControlPlaneComponentFinalizer = "hypershift.openshift.io/component-finalizer"

	// AWSEndpointServiceHOFinalizer keeps an AWSEndpointService until the endpoint service is gone.
	AWSEndpointServiceHOFinalizer = "hypershift.openshift.io/hypershift-operator-finalizer"

	// AWSEndpointServiceCPOFinalizer keeps an AWSEndpointService until the endpoint is gone.
	AWSEndpointServiceCPOFinalizer = "hypershift.openshift.io/control-plane-operator-finalizer"
)

// Back references and bookkeeping on objects of a control plane.
const (
	// HostedClusterAnnotation is {namespace}/{name} of the HostedCluster that an object belongs to.
	HostedClusterAnnotation = "hypershift.openshift.io/cluster"

	// HostedControlPlaneLabel is "true" on a control-plane namespace and the namespace's name on pods, Routes and Services
	// of it.
	HostedControlPlaneLabel = "hypershift.openshift.io/hosted-control-plane"

	// ControlPlaneComponentLabel is the name of the component that a pod belongs to.
	ControlPlaneComponentLabel = "hypershift.openshift.io/control-plane-component"

	// RequestServingComponentLabel is "true" on pods, nodes and taints that serve requests from outside.
	RequestServingComponentLabel = "hypershift.openshift.io/request-serving-component"

	// OperatorComponentLabel is the name of the operator that a pod belongs to.
	OperatorComponentLabel = "hypershift.openshift.io/operator-component"

	// NeedManagementKASAccessLabel is "true" on pods that may reach the API server of the management cluster.
	NeedManagementKASAccessLabel = "hypershift.openshift.io/need-management-kas-access"

	// NeedMetricsServerAccessLabel is "true" on pods that may reach the metrics server of the management cluster.
	NeedMetricsServerAccessLabel = "hypershift.openshift.io/need-metrics-server-access"

	// AllowGuestWebhooksServiceLabel is "true" on Services that webhooks of the hosted cluster may call.
	AllowGuestWebhooksServiceLabel = "hypershift.openshift.io/allow-guest-webhooks"

	// RouteVisibilityLabel is private on Routes without public DNS records.
	RouteVisibilityLabel = "hypershift.openshift.io/route-visibility"

	// RouteVisibilityPrivate is the only value of the label route-visibility.
	RouteVisibilityPrivate = "private"

	// ExternalDNSHostnameAnnotation is the name that external-dns points at a Service or Route.
	ExternalDNSHostnameAnnotation = "external-dns.alpha.kubernetes.io/hostname"

	// ReleaseImageAnnotation is the release that a Deployment was rendered from.
	ReleaseImageAnnotation = "hypershift.openshift.io/release-image"

	// ReferencedResourceAnnotationPrefix goes before the name of a HostedCluster that refers to the object; changes of the
	// object are then noticed.
	ReferencedResourceAnnotationPrefix = "referenced-resource.hypershift.openshift.io/"

	// HostedClusterSourcedAnnotation is "true" on a Secret whose content comes from the hosted cluster.
	HostedClusterSourcedAnnotation = "hypershift.openshift.io/hosted-cluster-sourced"

	// DefaultSecurityContextUIDAnnotation is the user ID of pods in the namespace, where the management cluster does not
	// assign one.
	DefaultSecurityContextUIDAnnotation = "hypershift.openshift.io/default-security-context-uid"

	// DesiredStateHashAnnotation is the hash of what an operator wrote last, so that it need not write it again.
	DesiredStateHashAnnotation = "hypershift.openshift.io/desired-state-hash"

	// ClusterNameLabel is the name of the HostedCluster that a Job is for.
	ClusterNameLabel = "hypershift.openshift.io/cluster-name"

	// ClusterNamespaceLabel is the namespace of the HostedCluster that a Job is for.
	ClusterNamespaceLabel = "hypershift.openshift.io/cluster-namespace"

	// ManagedLabel is "true" on objects of the hosted cluster that the hosted-cluster config operator made.
	ManagedLabel = "hypershift.openshift.io/managed"

	// ManagedByLabel names the operator that made an object of the control plane.
	ManagedByLabel = "hypershift.openshift.io/managed-by"
)

// Labels and annotations of namespaces that other projects define.
const (
	// PodSecurityEnforceLabel is the pod security level that is enforced.
	PodSecurityEnforceLabel = "pod-security.kubernetes.io/enforce"

	// PodSecurityAuditLabel is the pod security level that is audited.
	PodSecurityAuditLabel = "pod-security.kubernetes.io/audit"

	// PodSecurityWarnLabel is the pod security level that is warned about.
	PodSecurityWarnLabel = "pod-security.kubernetes.io/warn"

	// PodSecurityLabelSyncLabel is "false" to keep OpenShift from changing these levels.
	PodSecurityLabelSyncLabel = "security.openshift.io/scc.podSecurityLabelSync"

	// ClusterMonitoringLabel is "true" for namespaces that OpenShift's monitoring scrapes.
	ClusterMonitoringLabel = "openshift.io/cluster-monitoring"
)

// Labels and taints of nodes of the management cluster.
const (
	// ControlPlaneNodeLabel is "true" on nodes for control planes.
	ControlPlaneNodeLabel = "hypershift.openshift.io/control-plane"

	// ClusterSizeLabel is the size of clusters that the node is for.
	ClusterSizeLabel = "hypershift.openshift.io/cluster-size"

	// PairedNodesLabel is equal on the two nodes of a pair.
	PairedNodesLabel = "osd-fleet-manager.openshift.io/paired-nodes"
)

// Keys of NodePools and of the objects made from them.
const (
	// NodePoolAnnotation is {namespace}/{name} of the NodePool that an object belongs to; on a node, a label with the name
	// alone.
	NodePoolAnnotation = "hypershift.openshift.io/nodePool"

	// NodePoolLabel is the name of the NodePool, on ConfigMaps and nodes.
	NodePoolLabel = "hypershift.openshift.io/nodePool"

	// NodePoolFirstConfigVersionLabel is the hash of the configuration that a node was made with, on the node. A change in place leaves it
	// as it is: what the node has since is in its annotations.
	NodePoolFirstConfigVersionLabel = "hypershift.openshift.io/nodePoolFirstConfigVersion"

	// NodePoolCurrentConfigAnnotation is the hash of the configuration that every machine has.
	NodePoolCurrentConfigAnnotation = "hypershift.openshift.io/nodePoolCurrentConfig"

	// NodePoolCurrentConfigVersionAnnotation is the hash of configuration and release that every machine has.
	NodePoolCurrentConfigVersionAnnotation = "hypershift.openshift.io/nodePoolCurrentConfigVersion"
	// NodePoolConfigAliasAnnotation on a NodePool has pairs of hashes, as in 0a1b2c3d=4e5f6a7b: machines of a configuration that has the first hash
	// bear the second, which an older operator computed. It keeps them from being replaced.
	NodePoolConfigAliasAnnotation = "hypershift.openshift.io/nodePoolConfigAlias"
	// NodePoolRollsAnnotation on a NodePool notes what machines are made from, by name and digest, and why they were replaced the last few times. The
	// operator writes it together with a change of what machines are made from; `hypershift why` reads it.
	NodePoolRollsAnnotation = "hypershift.openshift.io/nodePoolRolls"
	// NodePoolAllowRolloutAnnotation on a NodePool allows the replacement of machines that condition UnrequestedRollout tells of. Its value is the one in the
	// condition's message: what is allowed is that replacement, and no other.
	NodePoolAllowRolloutAnnotation = "hypershift.openshift.io/allow-unrequested-rollout"

	// NodePoolTargetConfigVersionAnnotation is the hash of configuration and release that machines are to have.
	NodePoolTargetConfigVersionAnnotation = "hypershift.openshift.io/nodePoolTargetConfigVersion"

	// NodePoolPlatformMachineTemplateAnnotation is the machine template that every machine was made from.
	NodePoolPlatformMachineTemplateAnnotation = "hypershift.openshift.io/nodePoolPlatformMachineTemplate"

	// NodePoolUpgradeInProgressTrueAnnotation is the message of an upgrade in place that is under way.
	NodePoolUpgradeInProgressTrueAnnotation = "hypershift.openshift.io/nodePoolUpgradeInProgressTrue"

	// NodePoolUpgradeInProgressFalseAnnotation is the message of an upgrade in place that is stuck.
	NodePoolUpgradeInProgressFalseAnnotation = "hypershift.openshift.io/nodePoolUpgradeInProgressFalse"

	// NodePoolMaxUnavailableAnnotation is how many machines are upgraded in place at a time.
	NodePoolMaxUnavailableAnnotation = "hypershift.openshift.io/nodePoolMaxUnavailable"

	// NodePoolTaintsAnnotation is JSON: the taints for the node of a Machine.
	NodePoolTaintsAnnotation = "hypershift.openshift.io/nodePoolTaints"

	// NodePoolReleaseVersionAnnotation is the version that a Machine runs.
	NodePoolReleaseVersionAnnotation = "hypershift.openshift.io/release-version"

	// NodeLabelPrefix begins labels of a Machine that its node gets without the prefix.
	NodeLabelPrefix = "managed.hypershift.openshift.io."

	// NodePoolLabelsSyncedAnnotation is "true" on a node that has got its labels and taints.
	NodePoolLabelsSyncedAnnotation = "hypershift.openshift.io/labelsSynced"

	// EC2InstanceMetadataHTTPTokensAnnotation is required or optional: whether instance metadata needs a token.
	EC2InstanceMetadataHTTPTokensAnnotation = "hypershift.openshift.io/ec2-instance-metadata-http-tokens"

	// NodePoolHAProxyImageAnnotation is an image for the API server proxy on nodes.
	NodePoolHAProxyImageAnnotation = "hypershift.openshift.io/haproxy-image"

	// NodePoolCanonicalDataPlaneImagesAnnotation keeps the registry of images on nodes as the release has it.
	NodePoolCanonicalDataPlaneImagesAnnotation = "hypershift.openshift.io/canonical-data-plane-images"

	// EnableSpotAnnotation is the old form of placement.marketType Spot.
	EnableSpotAnnotation = "hypershift.openshift.io/enable-spot"

	// NodePoolSupportsKubevirtTopologySpreadConstraintsAnnotation is "true" on pools made since virtual machines are spread
	// by constraints.
	NodePoolSupportsKubevirtTopologySpreadConstraintsAnnotation = "hypershift.openshift.io/nodepool-supports-kubevirt-topology-spread-constraints"

	// ManagedByKarpenterLabel is "true" on NodePools and Secrets that stand for machines of Karpenter.
	ManagedByKarpenterLabel = "hypershift.openshift.io/managed-by-karpenter"

	// InfraIDLabel is the infraID, on virtual machines of the cluster.
	InfraIDLabel = "hypershift.openshift.io/infra-id"

	// NodePoolNameLabel is the name of the NodePool, on virtual machines of the cluster.
	NodePoolNameLabel = "hypershift.openshift.io/nodepool-name"

	// IsKubeVirtRHCOSVolumeLabel marks volumes with a boot image.
	IsKubeVirtRHCOSVolumeLabel = "hypershift.openshift.io/is-kubevirt-rhcos"

	// InterruptibleInstanceLabel marks a Machine that the cloud may take away.
	InterruptibleInstanceLabel = "hypershift.openshift.io/interruptible-instance"

	// SpotInterruptionSignalAnnotation is the taint that announced that the cloud takes the Machine away.
	SpotInterruptionSignalAnnotation = "hypershift.openshift.io/spot-interruption-signal"

	// GlobalPullSecretNodeLabel is "true" on nodes whose pull secret users of the hosted cluster may extend.
	GlobalPullSecretNodeLabel = "hypershift.openshift.io/nodepool-globalps-enabled"
)

// Keys of token Secrets, between the hypershift operator and the ignition server.
const (
	// TokenSecretAnnotation is "true" on a token Secret.
	TokenSecretAnnotation = "hypershift.openshift.io/ignition-config"

	// TokenSecretIgnitionReachedAnnotation is "True" once a machine has fetched its configuration.
	TokenSecretIgnitionReachedAnnotation = "hypershift.openshift.io/ignition-reached"

	// TokenSecretTokenGenerationTimeAnnotation is when the token was made, RFC 3339 with nanoseconds.
	TokenSecretTokenGenerationTimeAnnotation = "hypershift.openshift.io/last-token-generation-time"

	// TokenSecretExpirationTimestampAnnotation is when the Secret is deleted, RFC 3339.
	TokenSecretExpirationTimestampAnnotation = "hypershift.openshift.io/ignition-token-expiration-timestamp"

	// TokenSecretNodePoolUpgradeTypeAnnotation is spec.management.upgradeType of the NodePool.
	TokenSecretNodePoolUpgradeTypeAnnotation = "hypershift.openshift.io/node-pool-upgrade-type"
)

// Labels of ConfigMaps that operators exchange.
const (
	// CoreIgnitionConfigLabel is "true" on ConfigMaps that go into every machine's configuration.
	CoreIgnitionConfigLabel = "hypershift.openshift.io/core-ignition-config"

	// TunedConfigMapLabel is "true" on ConfigMaps with a Tuned.
	TunedConfigMapLabel = "hypershift.openshift.io/tuned-config"

	// PerformanceProfileConfigMapLabel is "true" on ConfigMaps with a PerformanceProfile.
	PerformanceProfileConfigMapLabel = "hypershift.openshift.io/performanceprofile-config"

	// ContainerRuntimeConfigConfigMapLabel is "true" on ConfigMaps with a ContainerRuntimeConfig.
	ContainerRuntimeConfigConfigMapLabel = "hypershift.openshift.io/containerruntimeconfig-config"

	// KubeletConfigConfigMapLabel is "true" on ConfigMaps with a KubeletConfig.
	KubeletConfigConfigMapLabel = "hypershift.openshift.io/kubeletconfig-config"

	// NTOGeneratedMachineConfigLabel is "true" on ConfigMaps with a MachineConfig that tuning made.
	NTOGeneratedMachineConfigLabel = "hypershift.openshift.io/nto-generated-machine-config"

	// NTOGeneratedPerformanceProfileStatusLabel is "true" on ConfigMaps with the state of a PerformanceProfile.
	NTOGeneratedPerformanceProfileStatusLabel = "hypershift.openshift.io/nto-generated-performance-profile-status"

	// MirroredConfigLabel is "true" on ConfigMaps that are copied into the hosted cluster.
	MirroredConfigLabel = "hypershift.openshift.io/mirrored-config"
)
