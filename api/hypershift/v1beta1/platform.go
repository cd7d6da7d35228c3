package v1beta1

// PlatformType names where the machines of a hosted cluster live.
//
// Local is this project's own: workers are privileged pods of the management cluster. It needs no cloud and is meant for
// one machine: development, tests, demonstrations.
//
// +kubebuilder:validation:Enum=AWS;Azure;IBMCloud;KubeVirt;Agent;PowerVS;None;Local
type PlatformType string

const (
	// AWSPlatform is Amazon Web Services.
	AWSPlatform PlatformType = "AWS"
	// AzurePlatform is Microsoft Azure.
	AzurePlatform PlatformType = "Azure"
	// IBMCloudPlatform is IBM Cloud.
	IBMCloudPlatform PlatformType = "IBMCloud"
	// KubevirtPlatform runs machines as virtual machines of a KubeVirt cluster.
	KubevirtPlatform PlatformType = "KubeVirt"
	// AgentPlatform takes machines from the pool of the assisted installer.
	AgentPlatform PlatformType = "Agent"
	// PowerVSPlatform is IBM Power Virtual Server.
	PowerVSPlatform PlatformType = "PowerVS"
	// NonePlatform creates no machines; users may join their own.
	NonePlatform PlatformType = "None"
	// LocalPlatform runs workers as privileged pods of the management cluster.
	LocalPlatform PlatformType = "Local"
)

// PlatformSpec is a union over type.
type PlatformSpec struct {
	// type names the platform. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type is immutable"
	Type PlatformType `json:"type"`

	// azure describes Microsoft Azure.
	//
	// +optional
	Azure *AzurePlatformSpec `json:"azure,omitempty"`
}
