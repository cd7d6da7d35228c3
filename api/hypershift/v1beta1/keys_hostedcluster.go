package v1beta1

// Keys whose comment says "copied" are kept equal on the HostedControlPlane: set there when they are set here, removed when
// they are not.

// Annotations on a HostedCluster that choose images.
const (
	// ControlPlaneOperatorImageAnnotation is a pull specification of the control-plane operator to use instead of the
	// release's.
	ControlPlaneOperatorImageAnnotation = "hypershift.openshift.io/control-plane-operator-image"

	// ControlPlaneOperatorImageLabelsAnnotation lists labels, as k=v,k2=v2, to assume of the control-plane operator's image
	// instead of reading them.
	ControlPlaneOperatorImageLabelsAnnotation = "hypershift.openshift.io/control-plane-operator-image-labels"

	// ImageOverridesAnnotation lists images, as name=ref,name2=ref2, to use instead of the release's.
	ImageOverridesAnnotation = "hypershift.openshift.io/image-overrides"

	// KonnectivityServerImageAnnotation is an image for the server of the tunnel; copied.
	KonnectivityServerImageAnnotation = "hypershift.openshift.io/konnectivity-server-image"

	// KonnectivityAgentImageAnnotation is an image for the agents of the tunnel; copied.
	KonnectivityAgentImageAnnotation = "hypershift.openshift.io/konnectivity-agent-image"

	// ClusterAutoscalerImage is an image for the cluster autoscaler; copied.
	ClusterAutoscalerImage = "hypershift.openshift.io/cluster-autoscaler-image"

	// MachineApproverImage is an image for the machine approver; copied.
	MachineApproverImage = "hypershift.openshift.io/machine-approver-image"

	// AWSKMSProviderImage is an image for the AWS KMS plugin; copied.
	AWSKMSProviderImage = "hypershift.openshift.io/aws-kms-provider-image"

	// IBMCloudKMSProviderImage is an image for the IBM Cloud KMS plugin; copied.
	IBMCloudKMSProviderImage = "hypershift.openshift.io/ibmcloud-kms-provider-image"

	// PortierisImageAnnotation is an image for the image admission webhook of IBM Cloud; copied.
	PortierisImageAnnotation = "hypershift.openshift.io/portieris-image"

	// ClusterAPIManagerImage is an image for the Cluster API manager.
	ClusterAPIManagerImage = "hypershift.openshift.io/capi-manager-image"

	// ClusterAPIProviderAWSImage is an image for the Cluster API provider of AWS.
	ClusterAPIProviderAWSImage = "hypershift.openshift.io/capi-provider-aws-image"

	// ClusterAPIKubeVirtProviderImage is an image for the Cluster API provider of KubeVirt.
	ClusterAPIKubeVirtProviderImage = "hypershift.openshift.io/capi-provider-kubevirt-image"

	// ClusterAPIAgentProviderImage is an image for the Cluster API provider of Agent.
	ClusterAPIAgentProviderImage = "hypershift.openshift.io/capi-provider-agent-image"

	// ClusterAPIAzureProviderImage is an image for the Cluster API provider of Azure.
	ClusterAPIAzureProviderImage = "hypershift.openshift.io/capi-provider-azure-image"

	// ClusterAPIPowerVSProviderImage is an image for the Cluster API provider of PowerVS.
	ClusterAPIPowerVSProviderImage = "hypershift.openshift.io/capi-provider-powervs-image"

	// ClusterAPIOpenStackProviderImage is an image for the Cluster API provider of OpenStack.
	ClusterAPIOpenStackProviderImage = "hypershift.openshift.io/capi-provider-openstack-image"

	// ClusterAPIGCPProviderImage is an image for the Cluster API provider of GCP.
	ClusterAPIGCPProviderImage = "hypershift.openshift.io/capi-provider-gcp-image"

	// OpenStackResourceControllerImage is an image for the OpenStack resource controller.
	OpenStackResourceControllerImage = "hypershift.openshift.io/orc-image"

	// KarpenterProviderAWSImage is an image for Karpenter; copied.
	KarpenterProviderAWSImage = "hypershift.openshift.io/karpenter-provider-aws-image"

	// KarpenterOperatorImage is an image for the operator of Karpenter; copied.
	KarpenterOperatorImage = "hypershift.openshift.io/karpenter-operator-image"

	// CertifiedOperatorsCatalogImageAnnotation is an image by digest for this catalog; the four catalogs are set together;
	// copied.
	CertifiedOperatorsCatalogImageAnnotation = "hypershift.openshift.io/certified-operators-catalog-image"

	// CommunityOperatorsCatalogImageAnnotation is an image by digest for this catalog; the four catalogs are set together;
	// copied.
	CommunityOperatorsCatalogImageAnnotation = "hypershift.openshift.io/community-operators-catalog-image"

	// RedHatMarketplaceCatalogImageAnnotation is an image by digest for this catalog; the four catalogs are set together;
	// copied.
	RedHatMarketplaceCatalogImageAnnotation = "hypershift.openshift.io/redhat-marketplace-catalog-image"

	// RedHatOperatorsCatalogImageAnnotation is an image by digest for this catalog; the four catalogs are set together;
	// copied.
	RedHatOperatorsCatalogImageAnnotation = "hypershift.openshift.io/redhat-operators-catalog-image"

	// OLMCatalogsISRegistryOverridesAnnotation lists registries to replace, as src=dst, in the image stream of the catalogs;
	// copied.
	OLMCatalogsISRegistryOverridesAnnotation = "hypershift.openshift.io/olm-catalogs-is-registry-overrides"
)

// Annotations on a HostedCluster that steer its life.
const (
	// RestartDateAnnotation is any text, usually a time; changing it restarts the control plane pod by pod.
	RestartDateAnnotation = "hypershift.openshift.io/restart-date"

	// PreviousRestartDateAnnotation is, on the HostedControlPlane, the last restart-date that was copied; the operators
	// write it.
	PreviousRestartDateAnnotation = "hypershift.openshift.io/previous-restart-date"

	// ForceUpgradeToAnnotation is the release image to move to although the hosted cluster says that it is not upgradeable.
	ForceUpgradeToAnnotation = "hypershift.openshift.io/force-upgrade-to"

	// DeleteProtectionAnnotation on a HostedCluster or NodePool, with value "true", keeps it from being deleted: admission refuses it, and so do commands,
	// until somebody removes the annotation. A NodePool goes with its HostedCluster all the same.
	DeleteProtectionAnnotation = "hypershift.openshift.io/delete-protection"

	// SkipReleaseImageValidation skips all checks of release versions when present, for NodePools too.
	SkipReleaseImageValidation = "hypershift.openshift.io/skip-release-image-validation"

	// DisablePKIReconciliationAnnotation leaves certificates alone when "true"; copied.
	DisablePKIReconciliationAnnotation = "hypershift.openshift.io/disable-pki-reconciliation"

	// CleanupCloudResourcesAnnotation has deletion remove what the hosted cluster made in the cloud when "true"; copied.
	CleanupCloudResourcesAnnotation = "hypershift.openshift.io/cleanup-cloud-resources"

	// HCDestroyGracePeriodAnnotation is how long, as a Go duration, the object stays after everything else is gone.
	HCDestroyGracePeriodAnnotation = "hypershift.openshift.io/destroy-grace-period"

	// SkipControlPlaneNamespaceDeletionAnnotation leaves the control-plane namespace behind when "true".
	SkipControlPlaneNamespaceDeletionAnnotation = "hypershift.openshift.io/skip-delete-hosted-controlplane-namespace"

	// HostedClusterScopeAnnotation names the operator that is to handle the object, where several share a management
	// cluster.
	HostedClusterScopeAnnotation = "hypershift.openshift.io/scope"

	// HasBeenAvailableAnnotation is "true" once the cluster has been available; the operators write it.
	HasBeenAvailableAnnotation = "hypershift.openshift.io/HasBeenAvailable"

	// HostedClusterRestoredFromBackupAnnotation says that the object was restored; checks then run and remove it; copied.
	HostedClusterRestoredFromBackupAnnotation = "hypershift.openshift.io/restored-from-backup"

	// HibernateAnnotation puts the hosted cluster to sleep: "true" until it is removed, or a time of RFC 3339 until which it sleeps. On a
	// HostedControlPlane the operators write "true" once the workers are gone.
	HibernateAnnotation = "hypershift.openshift.io/hibernate"

	// DebugDeploymentsAnnotation lists Deployments of the control plane to scale to 0; copied.
	DebugDeploymentsAnnotation = "hypershift.openshift.io/debug-deployments"

	// SkipKASConflictSANValidation skips the check that names of the API server do not collide when present.
	SkipKASConflictSANValidation = "hypershift.openshift.io/skip-kas-conflict-san-validation"
)

// Annotations on a HostedCluster that tune the control plane.
const (
	// ResourceRequestOverrideAnnotationPrefix goes before /{deployment}.{container}; the value, cpu=..,memory=.., replaces
	// resource requests; copied.
	ResourceRequestOverrideAnnotationPrefix = "resource-request-override.hypershift.openshift.io"

	// TopologyAnnotation is dedicated-request-serving-components to give the API server nodes of its own; copied.
	TopologyAnnotation = "hypershift.openshift.io/topology"

	// DedicatedRequestServingComponentsTopology is the only value of the annotation topology.
	DedicatedRequestServingComponentsTopology = "dedicated-request-serving-components"

	// RequestServingNodeAdditionalSelectorAnnotation lists labels, as k=v,k2=v2, of the nodes for the API server; the
	// scheduler writes it; copied.
	RequestServingNodeAdditionalSelectorAnnotation = "hypershift.openshift.io/request-serving-node-additional-selector"

	// HostedClusterScheduledAnnotation is "true" once nodes are assigned; the scheduler writes it.
	HostedClusterScheduledAnnotation = "hypershift.openshift.io/cluster-scheduled"

	// ClusterSizeOverrideAnnotation is a size to use instead of the one that follows from the number of nodes.
	ClusterSizeOverrideAnnotation = "hypershift.openshift.io/cluster-size-override"

	// ResourceBasedControlPlaneAutoscalingAnnotation has the size follow from what the API server uses when "true".
	ResourceBasedControlPlaneAutoscalingAnnotation = "hypershift.openshift.io/resource-based-cp-auto-scaling"

	// RecommendedClusterSizeAnnotation is the size that follows from what the API server uses; the operators write it.
	RecommendedClusterSizeAnnotation = "hypershift.openshift.io/recommended-cluster-size"

	// ControlPlanePriorityClass is the PriorityClass of the control plane; copied.
	ControlPlanePriorityClass = "hypershift.openshift.io/control-plane-priority-class"

	// APICriticalPriorityClass is the PriorityClass of what serves the API; copied.
	APICriticalPriorityClass = "hypershift.openshift.io/api-critical-priority-class"

	// EtcdPriorityClass is the PriorityClass of etcd; copied.
	EtcdPriorityClass = "hypershift.openshift.io/etcd-priority-class"

	// DefaultControlPlanePriorityClass is the PriorityClass of the control plane when no annotation says otherwise.
	DefaultControlPlanePriorityClass = "hypershift-control-plane"

	// DefaultAPICriticalPriorityClass is the PriorityClass of what serves the API when no annotation says otherwise.
	DefaultAPICriticalPriorityClass = "hypershift-api-critical"

	// DefaultEtcdPriorityClass is the PriorityClass of etcd when no annotation says otherwise.
	DefaultEtcdPriorityClass = "hypershift-etcd"

	// DisableProfilingAnnotation lists components (kube-apiserver, kube-scheduler, kube-controller-manager) without
	// profiling; copied.
	DisableProfilingAnnotation = "hypershift.openshift.io/disable-profiling"

	// KubeAPIServerGOGCAnnotation is GOGC of kube-apiserver; copied.
	KubeAPIServerGOGCAnnotation = "hypershift.openshift.io/kube-apiserver-gogc"

	// KubeAPIServerGOMemoryLimitAnnotation is GOMEMLIMIT of kube-apiserver; copied.
	KubeAPIServerGOMemoryLimitAnnotation = "hypershift.openshift.io/kube-apiserver-gomemlimit"

	// KubeAPIServerMaximumRequestsInFlight bounds reading requests in flight; copied.
	KubeAPIServerMaximumRequestsInFlight = "hypershift.openshift.io/kube-apiserver-max-requests-inflight"

	// KubeAPIServerMaximumMutatingRequestsInFlight bounds writing requests in flight; copied.
	KubeAPIServerMaximumMutatingRequestsInFlight = "hypershift.openshift.io/kube-apiserver-max-mutating-requests-inflight"

	// KubeAPIServerVerbosityLevelAnnotation is the log level of kube-apiserver; copied.
	KubeAPIServerVerbosityLevelAnnotation = "hypershift.openshift.io/kube-apiserver-verbosity-level"

	// KubeAPIServerGoAwayChance is the chance that a request makes its client connect anew; copied.
	KubeAPIServerGoAwayChance = "hypershift.openshift.io/kube-apiserver-goaway-chance"

	// KubeAPIServerServiceAccountTokenMaxExpiration bounds the life of service account tokens, at least 600 seconds; copied.
	KubeAPIServerServiceAccountTokenMaxExpiration = "hypershift.openshift.io/kube-apiserver-service-account-token-max-expiration"

	// PodSecurityAdmissionLabelOverrideAnnotation is the pod security level of the control-plane namespace.
	PodSecurityAdmissionLabelOverrideAnnotation = "hypershift.openshift.io/pod-security-admission-label-override"

	// DisableMonitoringServices omits ServiceMonitors when present.
	DisableMonitoringServices = "hypershift.openshift.io/disable-monitoring-services"

	// EnableMetricsForwarding is the old form of spec.monitoring.metricsForwarding; copied.
	EnableMetricsForwarding = "hypershift.openshift.io/enable-metrics-forwarding"

	// DisableMachineManagement omits Cluster API, autoscaler and machine approver when present; copied.
	DisableMachineManagement = "hypershift.openshift.io/disable-machine-management"

	// DisableIgnitionServerAnnotation omits the ignition server when present; copied.
	DisableIgnitionServerAnnotation = "hypershift.openshift.io/disable-ignition-server"

	// DisableClusterAutoscalerAnnotation is "true", on the HostedControlPlane, when no NodePool has spec.autoScaling.
	DisableClusterAutoscalerAnnotation = "hypershift.openshift.io/disable-cluster-autoscaler"

	// DisableAWSNodeTerminationHandlerAnnotation is "true", on the HostedControlPlane, when no NodePool uses Spot instances.
	DisableAWSNodeTerminationHandlerAnnotation = "hypershift.openshift.io/disable-aws-node-termination-handler"

	// KASServingCertHashAnnotation is, on the HostedControlPlane, the hash of the serving certificate that kube-apiserver
	// was rolled out with.
	KASServingCertHashAnnotation = "hypershift.openshift.io/kas-serving-cert-hash"
)

// Annotations on a HostedCluster that concern users and traffic.
const (
	// IDPOverridesAnnotationPrefix goes before the name of an identity provider; the value is JSON; copied.
	IDPOverridesAnnotationPrefix = "idpoverrides.hypershift.openshift.io/"

	// OauthLoginURLOverrideAnnotation is the URL for log-ins; copied.
	OauthLoginURLOverrideAnnotation = "oauth.hypershift.openshift.io/login-url-override"

	// PrivateIngressControllerAnnotation makes the default ingress of the hosted cluster private when "true"; copied.
	PrivateIngressControllerAnnotation = "hypershift.openshift.io/private-ingress-controller"

	// IngressControllerLoadBalancerScope is Internal or External; copied.
	IngressControllerLoadBalancerScope = "hypershift.openshift.io/ingress-controller-load-balancer-scope"

	// EnsureExistsPullSecretReconciliation has the pull secret in the hosted cluster created but never changed when "true";
	// copied.
	EnsureExistsPullSecretReconciliation = "hypershift.openshift.io/ensureexists-pullsecret-reconcile"

	// AWSLoadBalancerTargetNodesAnnotation selects the nodes behind load balancers; copied.
	AWSLoadBalancerTargetNodesAnnotation = "hypershift.openshift.io/aws-load-balancer-target-node-labels"

	// AWSLoadBalancerSubnetsAnnotation has no effect any more; copied.
	AWSLoadBalancerSubnetsAnnotation = "hypershift.openshift.io/aws-load-balancer-subnets"

	// AWSLoadBalancerHealthProbeModeAnnotation is Shared or ServiceNodePort; copied.
	AWSLoadBalancerHealthProbeModeAnnotation = "hypershift.openshift.io/aws-load-balancer-health-probe-mode"

	// AzureLoadBalancerHealthProbeModeAnnotation is shared or servicenodeport; copied.
	AzureLoadBalancerHealthProbeModeAnnotation = "hypershift.openshift.io/azure-load-balancer-health-probe-mode"

	// SharedLoadBalancerHealthProbePathAnnotation is the path of shared health probes, /healthz by default; copied.
	SharedLoadBalancerHealthProbePathAnnotation = "hypershift.openshift.io/shared-load-balancer-health-probe-path"

	// SharedLoadBalancerHealthProbePortAnnotation is the port of shared health probes, 10256 by default; copied.
	SharedLoadBalancerHealthProbePortAnnotation = "hypershift.openshift.io/shared-load-balancer-health-probe-port"

	// SwiftPodNetworkInstanceAnnotation is the pod network instance of router pods on Azure; copied.
	SwiftPodNetworkInstanceAnnotation = "hypershift.openshift.io/swift-pod-network-instance"
)

// Annotations on a HostedCluster that concern machines and platforms.
const (
	// ManagementPlatformAnnotation is the platform of the management cluster; the operators write it for KubeVirt; copied.
	ManagementPlatformAnnotation = "hypershift.openshift.io/management-platform"

	// MachineHealthCheckTimeoutAnnotation is how long a node may be unhealthy, as a Go duration; that of the NodePool wins.
	MachineHealthCheckTimeoutAnnotation = "hypershift.openshift.io/machine-health-check-timeout"

	// MachineHealthCheckNodeStartupTimeoutAnnotation is how long a machine may take to become a node, as a Go duration; that
	// of the NodePool wins.
	MachineHealthCheckNodeStartupTimeoutAnnotation = "hypershift.openshift.io/machine-health-check-node-startup-timeout"

	// MachineHealthCheckMaxUnhealthyAnnotation is the number or percentage of unhealthy machines above which none is
	// replaced; that of the NodePool wins.
	MachineHealthCheckMaxUnhealthyAnnotation = "hypershift.openshift.io/machine-health-check-max-unhealthy"

	// AllowUnsupportedKubeVirtRHCOSVariantsAnnotation skips the check that the release has a KubeVirt image.
	AllowUnsupportedKubeVirtRHCOSVariantsAnnotation = "hypershift.openshift.io/allow-unsupported-kubevirt-rhcos-variants"

	// JSONPatchAnnotation is a JSON patch for virtual machine templates; NodePools may have it too.
	JSONPatchAnnotation = "hypershift.openshift.io/kubevirt-vm-jsonpatch"

	// AWSMachinePublicIPs gives machines public addresses when "true", for development; copied.
	AWSMachinePublicIPs = "hypershift.openshift.io/aws-machine-public-ips"

	// AWSKarpenterDefaultInstanceProfile is the instance profile of Karpenter's machines; copied.
	AWSKarpenterDefaultInstanceProfile = "hypershift.openshift.io/aws-karpenter-default-instance-profile"

	// KarpenterCoreE2EOverrideAnnotation is for tests of Karpenter; copied.
	KarpenterCoreE2EOverrideAnnotation = "hypershift.openshift.io/karpenter-core-e2e-override"

	// AWSTerminationHandlerQueueURLAnnotation is the old form of spec.platform.aws.terminationHandlerQueueURL; copied.
	AWSTerminationHandlerQueueURLAnnotation = "hypershift.openshift.io/aws-termination-handler-queue-url"

	// AzureHCPClusterResourceIDAnnotation is the Azure resource of the cluster; the control-plane namespace gets it.
	AzureHCPClusterResourceIDAnnotation = "azure.microsoft.com/hcp-cluster-azure-resource-id"
)

// Labels on a HostedCluster.
const (
	// HostedClusterSizeLabel is the size of the cluster; the operators write it.
	HostedClusterSizeLabel = "hypershift.openshift.io/hosted-cluster-size"

	// APIOpenShiftLabelPrefix begins labels that are kept equal on the HostedControlPlane.
	APIOpenShiftLabelPrefix = "api.openshift.com/"

	// LimitedSupportLabel marks a cluster with limited support in metrics.
	LimitedSupportLabel = "api.openshift.com/limited-support"

	// SilenceClusterAlertsLabel silences alerts about the cluster.
	SilenceClusterAlertsLabel = "hypershift.openshift.io/silence-cluster-alerts"
)
