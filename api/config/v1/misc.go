package v1

// OperatorHubSpec says which operator catalogs are offered.
type OperatorHubSpec struct {
	// disableAllDefaultSources offers none of the default catalogs except those that sources switches on.
	//
	// +optional
	DisableAllDefaultSources bool `json:"disableAllDefaultSources,omitempty"`

	// sources switches default catalogs on and off.
	//
	// +optional
	Sources []HubSource `json:"sources,omitempty"`
}

// HubSource switches a catalog on or off.
type HubSource struct {
	// name is the name of a default catalog.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// disabled switches it off.
	//
	// +optional
	Disabled bool `json:"disabled"`
}

// ProxySpec says by which proxy the outside is reached.
type ProxySpec struct {
	// httpProxy is the URL of the proxy for HTTP.
	//
	// +optional
	HTTPProxy string `json:"httpProxy,omitempty"`

	// httpsProxy is the URL of the proxy for HTTPS.
	//
	// +optional
	HTTPSProxy string `json:"httpsProxy,omitempty"`

	// noProxy lists, with commas between, hosts, domains and networks to reach directly.
	//
	// +optional
	NoProxy string `json:"noProxy,omitempty"`

	// readinessEndpoints lists URLs to reach through the proxy before it is used.
	//
	// +optional
	ReadinessEndpoints []string `json:"readinessEndpoints,omitempty"`

	// trustedCA names a ConfigMap whose key ca-bundle.crt holds certificates to trust besides the public ones.
	//
	// +optional
	TrustedCA ConfigMapNameReference `json:"trustedCA,omitzero"`
}

// SchedulerProfile names a way to place pods.
//
// +kubebuilder:validation:Enum="";LowNodeUtilization;HighNodeUtilization;NoScoring
type SchedulerProfile string

const (
	// LowNodeUtilization spreads pods; it is the default.
	LowNodeUtilization SchedulerProfile = "LowNodeUtilization"
	// HighNodeUtilization packs pods.
	HighNodeUtilization SchedulerProfile = "HighNodeUtilization"
	// NoScoring takes the first node that fits.
	NoScoring SchedulerProfile = "NoScoring"
)

// SchedulerSpec says how pods are placed.
type SchedulerSpec struct {
	// policy is not used.
	//
	// +optional
	Policy ConfigMapNameReference `json:"policy,omitzero"`

	// profile names the way.
	//
	// +optional
	Profile SchedulerProfile `json:"profile,omitempty"`

	// profileCustomizations changes details of the profile.
	//
	// +optional
	ProfileCustomizations ProfileCustomizations `json:"profileCustomizations,omitzero"`

	// defaultNodeSelector is a label selector that pods get when neither they nor their namespace have one.
	//
	// +optional
	DefaultNodeSelector string `json:"defaultNodeSelector,omitempty"`

	// mastersSchedulable has no effect: hosted clusters have no nodes for the control plane.
	//
	// +optional
	MastersSchedulable bool `json:"mastersSchedulable,omitempty"`
}

// DRAEnablement says whether the scheduler knows dynamically allocated resources.
//
// +kubebuilder:validation:Enum="";Enabled;Disabled
type DRAEnablement string

// ProfileCustomizations changes details of a profile.
type ProfileCustomizations struct {
	// dynamicResourceAllocation says whether the scheduler knows dynamically allocated resources. Unset means as
	// Kubernetes has it.
	//
	// +optional
	DynamicResourceAllocation DRAEnablement `json:"dynamicResourceAllocation,omitempty"`
}
