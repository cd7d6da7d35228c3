package component

// Labels that the framework sets.
const (
	// ControlPlaneComponentLabel on pods holds the name of their component.
	ControlPlaneComponentLabel = "hypershift.openshift.io/control-plane-component"
	// HostedControlPlaneLabel on pods holds their namespace; the pods of a control plane are drawn to each other by it.
	HostedControlPlaneLabel = "hypershift.openshift.io/hosted-control-plane"
	// NeedManagementKASAccessLabel on pods lets them through the network policy to the management API server.
	NeedManagementKASAccessLabel = "hypershift.openshift.io/need-management-kas-access"
	// NeedMetricsServerAccessAnnotation on a pod template asks for a token of the management cluster.
	NeedMetricsServerAccessAnnotation = "hypershift.openshift.io/need-metrics-server-access"
	// RequestServingLabel marks pods that serve requests of users, and nodes that are kept for such pods.
	RequestServingLabel = "hypershift.openshift.io/request-serving-component"

	// controlPlaneNodeLabel and clusterNodeLabel are labels and taints of nodes kept for control planes.
	controlPlaneNodeLabel = "hypershift.openshift.io/control-plane"
	clusterNodeLabel      = "hypershift.openshift.io/cluster"
)

// Annotations that the framework sets on pod templates.
const (
	// ConfigHashAnnotation changes when a mounted ConfigMap or Secret does, which restarts the pods.
	ConfigHashAnnotation = "component.hypershift.openshift.io/config-hash"
	// ReleaseImageAnnotation holds the release that the pods were rendered for.
	ReleaseImageAnnotation = "hypershift.openshift.io/release-image"
	// RestartDateAnnotation is copied from the HostedControlPlane; changing it restarts every component.
	RestartDateAnnotation = "hypershift.openshift.io/restart-date"

	safeToEvictVolumesAnnotation = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
)

// Annotations of a HostedControlPlane that the framework obeys.
const (
	topologyAnnotation            = "hypershift.openshift.io/topology"
	dedicatedRequestServing       = "dedicated-request-serving-components"
	additionalSelectorAnnotation  = "hypershift.openshift.io/request-serving-node-additional-selector"
	debugDeploymentsAnnotation    = "hypershift.openshift.io/debug-deployments"
	disablePKIAnnotation          = "hypershift.openshift.io/disable-pki-reconciliation"
	etcdPriorityAnnotation        = "hypershift.openshift.io/etcd-priority-class"
	apiCriticalPriorityAnnotation = "hypershift.openshift.io/api-critical-priority-class"
	priorityAnnotation            = "hypershift.openshift.io/control-plane-priority-class"
	resourceOverridePrefix        = "resource-request-override.hypershift.openshift.io/"

	// hostedClusterAnnotation is the reference back to the HostedCluster, "namespace/name".
	hostedClusterAnnotation = "hypershift.openshift.io/cluster"
)

// PriorityClasses of the management cluster.
const (
	etcdPriorityClass         = "hypershift-etcd"
	apiCriticalPriorityClass  = "hypershift-api-critical"
	controlPlanePriorityClass = "hypershift-control-plane"
)
