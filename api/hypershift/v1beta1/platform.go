package v1beta1

// PlatformType names where the machines of a hosted cluster live.
//
// Local is this project's own: workers are privileged pods of the management cluster. It needs no cloud and is meant for
// one machine: development, tests, demonstrations.
//
// +kubebuilder:validation:Enum=AWS;Azure;IBMCloud;KubeVirt;Agent;PowerVS;None;OpenStack;GCP;Local
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
	// OpenStackPlatform is OpenStack; it is a preview.
	OpenStackPlatform PlatformType = "OpenStack"
	// GCPPlatform is Google Cloud; it is a preview.
	GCPPlatform PlatformType = "GCP"
	// LocalPlatform runs workers as privileged pods of the management cluster.
	LocalPlatform PlatformType = "Local"
)

// PlatformSpec is a union over type. None and Local need nothing further.
type PlatformSpec struct {
	// type names the platform. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type is immutable"
	Type PlatformType `json:"type"`

	// aws describes Amazon Web Services when type is AWS.
	//
	// +optional
	AWS *AWSPlatformSpec `json:"aws,omitempty"`

	// agent describes the pool of the assisted installer when type is Agent.
	//
	// +optional
	Agent *AgentPlatformSpec `json:"agent,omitempty"`

	// ibmcloud describes IBM Cloud when type is IBMCloud.
	//
	// +optional
	IBMCloud *IBMCloudPlatformSpec `json:"ibmcloud,omitempty"`

	// azure describes Microsoft Azure when type is Azure.
	//
	// +optional
	Azure *AzurePlatformSpec `json:"azure,omitempty"`

	// powervs describes IBM Power Virtual Server when type is PowerVS.
	//
	// +optional
	PowerVS *PowerVSPlatformSpec `json:"powervs,omitempty"`

	// kubevirt describes a KubeVirt cluster when type is KubeVirt. The operator fills in what is missing.
	//
	// +optional
	Kubevirt *KubevirtPlatformSpec `json:"kubevirt,omitempty"`

	// openstack describes OpenStack when type is OpenStack (TechPreview).
	//
	// +optional
	OpenStack *OpenStackPlatformSpec `json:"openstack,omitempty"`

	// gcp describes Google Cloud when type is GCP (TechPreview).
	//
	// +optional
	GCP *GCPPlatformSpec `json:"gcp,omitempty"`
}

// PlatformStatus is what was found on the platform.
type PlatformStatus struct {
	// aws is what was found in Amazon Web Services.
	//
	// +optional
	AWS *AWSPlatformStatus `json:"aws,omitempty"`
}
