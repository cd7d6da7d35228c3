package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterSizingConfigurationValidType is the condition that says whether the sizes make sense.
const ClusterSizingConfigurationValidType = "ClusterSizingConfigurationValid"

// ClusterSizingConfiguration says how large hosted clusters are by their number of nodes, and what follows from it. There is
// one, named cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustersizingconfigurations,shortName=csc;cscs,scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'cluster'",message="the only ClusterSizingConfiguration is named cluster"
type ClusterSizingConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec lists the sizes.
	//
	// +optional
	Spec ClusterSizingConfigurationSpec `json:"spec,omitzero"`

	// status says whether they make sense.
	//
	// +optional
	Status ClusterSizingConfigurationStatus `json:"status,omitzero"`
}

// ClusterSizingConfigurationList is a list of ClusterSizingConfigurations.
//
// +kubebuilder:object:root=true
type ClusterSizingConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterSizingConfiguration `json:"items"`
}

// ClusterSizingConfigurationSpec lists the sizes.
type ClusterSizingConfigurationSpec struct {
	// sizes lists the sizes. Together they cover every number of nodes once: one starts at 0, one has no end.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:XValidation:rule="self.exists_one(i, i.criteria.from == 0)",message="exactly one size must have criteria.from 0"
	// +kubebuilder:validation:XValidation:rule="self.exists_one(i, !has(i.criteria.to))",message="exactly one size must have no criteria.to"
	Sizes []SizeConfiguration `json:"sizes"`

	// concurrency bounds how many clusters change their size at a time.
	//
	// +optional
	Concurrency ConcurrencyConfiguration `json:"concurrency,omitzero"`

	// transitionDelay says how long a new size must hold before it counts.
	//
	// +optional
	TransitionDelay TransitionDelayConfiguration `json:"transitionDelay,omitzero"`

	// nonRequestServingNodesBufferPerZone is how many nodes each zone has in reserve for what does not serve requests.
	//
	// +optional
	NonRequestServingNodesBufferPerZone *resource.Quantity `json:"nonRequestServingNodesBufferPerZone,omitempty"`

	// resourceBasedAutoscaling configures sizes that follow from what API servers use.
	//
	// +optional
	ResourceBasedAutoscaling ResourceBasedAutoscalingConfiguration `json:"resourceBasedAutoscaling,omitzero"`
}

// ResourceBasedAutoscalingConfiguration configures sizes that follow from what API servers use.
type ResourceBasedAutoscalingConfiguration struct {
	// kubeAPIServerMemoryFraction is the share of a size's memory that an API server may use. Unset means 0.65.
	//
	// +optional
	KubeAPIServerMemoryFraction *resource.Quantity `json:"kubeAPIServerMemoryFraction,omitempty"`
}

// SizeConfiguration is one size.
type SizeConfiguration struct {
	// name names the size.
	//
	// +required
	Name string `json:"name"`

	// criteria says which clusters have it.
	//
	// +required
	Criteria NodeCountCriteria `json:"criteria"`

	// effects is what such clusters get.
	//
	// +optional
	Effects *Effects `json:"effects,omitempty"`

	// management is what the management cluster keeps in reserve for them.
	//
	// +optional
	Management *Management `json:"management,omitempty"`

	// capacity is what a node for them offers.
	//
	// +optional
	Capacity *SizeCapacity `json:"capacity,omitempty"`
}

// NodeCountCriteria is a range of numbers of nodes, both ends included.
//
// +kubebuilder:validation:XValidation:rule="!has(self.to) || self.from <= self.to",message="from cannot be greater than to"
type NodeCountCriteria struct {
	// from is the least number.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	From int32 `json:"from"`

	// to is the greatest number. Unset means no bound.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	To *int32 `json:"to,omitempty"`
}

// Effects is what clusters of a size get.
type Effects struct {
	// kasGoMemLimit is GOMEMLIMIT of kube-apiserver.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^\d+(B|KiB|MiB|GiB|TiB)?$`
	KASGoMemLimit string `json:"kasGoMemLimit,omitempty"`

	// controlPlanePriorityClassName is the PriorityClass of the control plane.
	//
	// +optional
	ControlPlanePriorityClassName *string `json:"controlPlanePriorityClassName,omitempty"`

	// etcdPriorityClassName is the PriorityClass of etcd.
	//
	// +optional
	EtcdPriorityClassName *string `json:"etcdPriorityClassName,omitempty"`

	// APICriticalPriorityClassName is the PriorityClass of what serves the API.
	//
	// +optional
	APICriticalPriorityClassName *string `json:"APICriticalPriorityClassName,omitempty"`

	// resourceRequests lists resource requests of containers.
	//
	// +optional
	ResourceRequests []ResourceRequest `json:"resourceRequests,omitempty"`

	// machineHealthCheckTimeout is how long a node may be unhealthy, as a Go duration.
	//
	// +optional
	MachineHealthCheckTimeout *metav1.Duration `json:"machineHealthCheckTimeout,omitempty"`

	// maximumRequestsInflight bounds reading requests in flight.
	//
	// +optional
	MaximumRequestsInflight *int `json:"maximumRequestsInflight,omitempty"`

	// maximumMutatingRequestsInflight bounds writing requests in flight.
	//
	// +optional
	MaximumMutatingRequestsInflight *int `json:"maximumMutatingRequestsInflight,omitempty"`
}

// ResourceRequest is the resource request of one container.
type ResourceRequest struct {
	// deploymentName is the name of the Deployment or StatefulSet.
	//
	// +required
	DeploymentName string `json:"deploymentName"`

	// containerName is the name of the container.
	//
	// +required
	ContainerName string `json:"containerName"`

	// memory is the request for memory.
	//
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// cpu is the request for processors.
	//
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
}

// Management is what the management cluster keeps in reserve for clusters of a size.
type Management struct {
	// placeholders is how many pairs of nodes are kept ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Placeholders int `json:"placeholders,omitempty"`

	// nonRequestServingNodesPerZone is how many nodes a zone needs for what does not serve requests.
	//
	// +optional
	NonRequestServingNodesPerZone *resource.Quantity `json:"nonRequestServingNodesPerZone,omitempty"`
}

// SizeCapacity is what a node for clusters of a size offers.
type SizeCapacity struct {
	// memory is its memory.
	//
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// cpu is its processors.
	//
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
}

// ConcurrencyConfiguration bounds how many clusters change their size at a time.
type ConcurrencyConfiguration struct {
	// slidingWindow is the time over which changes are counted, as a Go duration.
	//
	// +required
	// +kubebuilder:default:="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(s|m|h))+$`
	SlidingWindow metav1.Duration `json:"slidingWindow,omitempty"`

	// limit is how many changes that time may hold.
	//
	// +required
	// +kubebuilder:default:=5
	// +kubebuilder:validation:Minimum=1
	Limit int32 `json:"limit,omitempty"`
}

// TransitionDelayConfiguration says how long a new size must hold before it counts.
type TransitionDelayConfiguration struct {
	// increase is for a larger size, as a Go duration.
	//
	// +optional
	// +kubebuilder:default:="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(s|m|h))+$`
	Increase metav1.Duration `json:"increase,omitzero"`

	// decrease is for a smaller size, as a Go duration.
	//
	// +optional
	// +kubebuilder:default:="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(s|m|h))+$`
	Decrease metav1.Duration `json:"decrease,omitzero"`
}

// ClusterSizingConfigurationStatus says whether the sizes make sense.
type ClusterSizingConfigurationStatus struct {
	// conditions hold ClusterSizingConfigurationValid.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
