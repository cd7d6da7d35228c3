package v1

// FeatureSet names a set of features.
//
// +kubebuilder:validation:Enum=CustomNoUpgrade;DevPreviewNoUpgrade;TechPreviewNoUpgrade;OKD;""
// +kubebuilder:validation:XValidation:rule="oldSelf == 'CustomNoUpgrade' ? self == 'CustomNoUpgrade' : true",message="featureSet cannot change from CustomNoUpgrade"
// +kubebuilder:validation:XValidation:rule="oldSelf == 'TechPreviewNoUpgrade' ? self == 'TechPreviewNoUpgrade' : true",message="featureSet cannot change from TechPreviewNoUpgrade"
// +kubebuilder:validation:XValidation:rule="oldSelf == 'DevPreviewNoUpgrade' ? self == 'DevPreviewNoUpgrade' : true",message="featureSet cannot change from DevPreviewNoUpgrade"
// +kubebuilder:validation:XValidation:rule="oldSelf == 'OKD' ? self != \"\" : true",message="featureSet cannot change from OKD to the default set"
type FeatureSet string

const (
	// Default is what is supported.
	Default FeatureSet = ""
	// TechPreviewNoUpgrade adds previews; such a cluster cannot be upgraded.
	TechPreviewNoUpgrade FeatureSet = "TechPreviewNoUpgrade"
	// DevPreviewNoUpgrade adds what developers try; such a cluster cannot be upgraded.
	DevPreviewNoUpgrade FeatureSet = "DevPreviewNoUpgrade"
	// CustomNoUpgrade is what the user lists; such a cluster cannot be upgraded.
	CustomNoUpgrade FeatureSet = "CustomNoUpgrade"
	// OKD is what the community distribution supports.
	OKD FeatureSet = "OKD"
)

// FeatureGateSpec says which features are on.
type FeatureGateSpec struct {
	FeatureGateSelection `json:",inline"`
}

// FeatureGateSelection is a union over featureSet.
//
// +union
type FeatureGateSelection struct {
	// featureSet names a set of features. It cannot be taken back.
	//
	// +unionDiscriminator
	// +optional
	FeatureSet FeatureSet `json:"featureSet,omitempty"`

	// customNoUpgrade lists features when featureSet is CustomNoUpgrade.
	//
	// +optional
	// +nullable
	CustomNoUpgrade *CustomFeatureGates `json:"customNoUpgrade,omitempty"`
}

// CustomFeatureGates lists features.
type CustomFeatureGates struct {
	// enabled lists features to switch on.
	//
	// +optional
	Enabled []FeatureGateName `json:"enabled,omitempty"`

	// disabled lists features to switch off.
	//
	// +optional
	Disabled []FeatureGateName `json:"disabled,omitempty"`
}

// FeatureGateName is the name of a feature.
//
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+\.?$`
type FeatureGateName string
