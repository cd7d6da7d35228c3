package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Release is a release and where it comes from.
type Release struct {
	// version is the semantic version of the release.
	//
	// +required
	Version string `json:"version"`

	// architecture is Multi when the release's images are for several architectures (TechPreview).
	//
	// +optional
	Architecture ClusterVersionArchitecture `json:"architecture,omitempty"`

	// image is the pull specification of the release.
	//
	// +required
	Image string `json:"image"`

	// url is where the release is described.
	//
	// +optional
	URL string `json:"url,omitempty"`

	// channels lists the update channels that offer the release.
	//
	// +optional
	// +listType=set
	Channels []string `json:"channels,omitempty"`
}

// ClusterVersionArchitecture says which architectures a release is for.
//
// +kubebuilder:validation:Enum=Multi;""
type ClusterVersionArchitecture string

// ClusterVersionArchitectureMulti is several architectures.
const ClusterVersionArchitectureMulti ClusterVersionArchitecture = "Multi"

// UpdateState says how far a rollout is.
type UpdateState string

const (
	// CompletedUpdate is a rollout that reached every part.
	CompletedUpdate UpdateState = "Completed"
	// PartialUpdate is a rollout that did not, or not yet.
	PartialUpdate UpdateState = "Partial"
)

// UpdateHistory is one rollout of a release.
type UpdateHistory struct {
	// state is Completed or Partial.
	//
	// +required
	State UpdateState `json:"state"`

	// startedTime is when the rollout began.
	//
	// +required
	StartedTime metav1.Time `json:"startedTime"`

	// completionTime is when the rollout was completed, or given up for the next one; null while it is under way.
	//
	// +required
	// +nullable
	CompletionTime *metav1.Time `json:"completionTime"`

	// version is the version of the release; empty while it is not known.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// image is the pull specification of the release.
	//
	// +required
	Image string `json:"image"`

	// verified says that the signature of the release was checked before the rollout began.
	//
	// +required
	Verified bool `json:"verified"`

	// acceptedRisks says which warnings the rollout was started against.
	//
	// +optional
	AcceptedRisks string `json:"acceptedRisks,omitempty"`
}

// ConditionalUpdate is a release that is recommended only to clusters that its risks do not concern.
type ConditionalUpdate struct {
	// release is the release.
	//
	// +required
	Release Release `json:"release"`

	// riskNames lists the names of risks that concern the release; they are described elsewhere in the status (TechPreview).
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	// +kubebuilder:validation:items:MaxLength=256
	RiskNames []string `json:"riskNames,omitempty"`

	// risks lists what may go wrong.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	Risks []ConditionalUpdateRisk `json:"risks"`

	// conditions say whether the release is recommended.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionalUpdateRisk is something that may go wrong with a release on some clusters.
type ConditionalUpdateRisk struct {
	// conditions say whether the risk concerns this cluster: the type Applies (TechPreview).
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.exists_one(c, c.type == 'Applies')",message="conditions must hold exactly one of type Applies"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// url is where the risk is described.
	//
	// +required
	// +kubebuilder:validation:Format=uri
	// +kubebuilder:validation:MinLength=1
	URL string `json:"url"`

	// name is a CamelCase word for the risk.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// message describes the risk.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Message string `json:"message"`

	// matchingRules say which clusters the risk concerns. The first rule that can be evaluated decides.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	MatchingRules []ClusterCondition `json:"matchingRules"`
}

// ClusterCondition matches clusters.
type ClusterCondition struct {
	// type is Always or PromQL.
	//
	// +required
	// +kubebuilder:validation:Enum=Always;PromQL
	Type string `json:"type"`

	// promql is the query when type is PromQL.
	//
	// +optional
	PromQL *PromQLClusterCondition `json:"promql,omitempty"`
}

// PromQLClusterCondition matches clusters by a query over their metrics.
type PromQLClusterCondition struct {
	// promql is a query that gives 1 for clusters that match and 0 for others.
	//
	// +required
	PromQL string `json:"promql"`
}
