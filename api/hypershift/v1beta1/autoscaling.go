package v1beta1

// ScalingType says in which directions the cluster autoscaler works.
//
// +kubebuilder:validation:Enum=ScaleUpOnly;ScaleUpAndScaleDown
type ScalingType string

const (
	// ScaleUpOnly never removes a node.
	ScaleUpOnly ScalingType = "ScaleUpOnly"
	// ScaleUpAndScaleDown also removes nodes that are not needed.
	ScaleUpAndScaleDown ScalingType = "ScaleUpAndScaleDown"
)

// ExpanderString names a way to choose among NodePools that could grow.
//
// +kubebuilder:validation:Enum=LeastWaste;Priority;Random
type ExpanderString string

const (
	// LeastWasteExpander chooses the pool that leaves the least idle CPU, then memory.
	LeastWasteExpander ExpanderString = "LeastWaste"
	// PriorityExpander chooses by the priorities that the user has given.
	PriorityExpander ExpanderString = "Priority"
	// RandomExpander chooses at random.
	RandomExpander ExpanderString = "Random"
)

// ClusterAutoscaling configures the one cluster autoscaler of a hosted cluster.
//
// +kubebuilder:validation:XValidation:rule="self.scaling == 'ScaleUpAndScaleDown' ? true : !has(self.scaleDown)",message="scaleDown is allowed only when scaling is ScaleUpAndScaleDown"
type ClusterAutoscaling struct {
	// scaling says in which directions the autoscaler works.
	//
	// +optional
	// +kubebuilder:default:="ScaleUpAndScaleDown"
	Scaling ScalingType `json:"scaling,omitempty"`

	// scaleDown says when a node is not needed.
	//
	// +optional
	ScaleDown *ScaleDownConfig `json:"scaleDown,omitempty"`

	// balancingIgnoredLabels lists node labels, besides those of the platform, by which otherwise similar NodePools may
	// differ and still be kept at the same size.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.all(l, l.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?$'))`,message="each balancingIgnoredLabels entry must be a label key: an optional DNS prefix and '/', then up to 63 letters, digits, '-', '_' or '.'"
	BalancingIgnoredLabels []string `json:"balancingIgnoredLabels,omitempty"`

	// maxNodesTotal bounds the nodes of all NodePools together. Unset means no bound.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxNodesTotal *int32 `json:"maxNodesTotal,omitempty"`

	// maxPodGracePeriod is how many seconds a pod gets to end before its node is removed. Unset means 600.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxPodGracePeriod *int32 `json:"maxPodGracePeriod,omitempty"`

	// maxNodeProvisionTime is how long a machine may take to become a node, as a Go duration. Unset means 15m.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	MaxNodeProvisionTime string `json:"maxNodeProvisionTime,omitempty"`

	// maxFreeDifferenceRatioPercent is how far, in percent, the free resources of two NodePools may differ for them to
	// count as similar.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxFreeDifferenceRatioPercent *int32 `json:"maxFreeDifferenceRatioPercent,omitempty"`

	// podPriorityThreshold is the priority below which pods cause no growth and stop no shrinking. Unset means -10.
	//
	// +optional
	PodPriorityThreshold *int32 `json:"podPriorityThreshold,omitempty"`

	// expanders lists ways to choose a NodePool to grow; each narrows what the one before left. Unset means as the
	// autoscaler has it.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Expanders []ExpanderString `json:"expanders,omitempty"`
}

// ScaleDownConfig says when the autoscaler removes a node.
type ScaleDownConfig struct {
	// delayAfterAddSeconds is how long after a node was added shrinking is considered again.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	DelayAfterAddSeconds *int32 `json:"delayAfterAddSeconds,omitempty"`

	// delayAfterDeleteSeconds is how long after a node was removed shrinking is considered again.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	DelayAfterDeleteSeconds *int32 `json:"delayAfterDeleteSeconds,omitempty"`

	// delayAfterFailureSeconds is how long after a removal failed shrinking is considered again.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	DelayAfterFailureSeconds *int32 `json:"delayAfterFailureSeconds,omitempty"`

	// unneededDurationSeconds is how long a node must have been unneeded before it is removed.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	UnneededDurationSeconds *int32 `json:"unneededDurationSeconds,omitempty"`

	// utilizationThresholdPercent is the share of its requested resources below which a node counts as unneeded.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	UtilizationThresholdPercent *int32 `json:"utilizationThresholdPercent,omitempty"`
}
