package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodePoolPlatform is a union over type. None and Local need nothing further.
type NodePoolPlatform struct {
	// type names the platform; it is that of the HostedCluster. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type is immutable"
	Type PlatformType `json:"type"`

	// aws describes machines of Amazon Web Services when type is AWS.
	//
	// +optional
	AWS *AWSNodePoolPlatform `json:"aws,omitempty"`

	// ibmcloud describes machines of IBM Cloud when type is IBMCloud.
	//
	// +optional
	IBMCloud *IBMCloudPlatformSpec `json:"ibmcloud,omitempty"`

	// kubevirt describes virtual machines of a KubeVirt cluster when type is KubeVirt.
	//
	// +optional
	Kubevirt *KubevirtNodePoolPlatform `json:"kubevirt,omitempty"`

	// agent selects machines from the pool of the assisted installer when type is Agent.
	//
	// +optional
	Agent *AgentNodePoolPlatform `json:"agent,omitempty"`

	// azure describes machines of Microsoft Azure when type is Azure.
	//
	// +optional
	Azure *AzureNodePoolPlatform `json:"azure,omitempty"`

	// powervs describes machines of IBM Power Virtual Server when type is PowerVS.
	//
	// +optional
	PowerVS *PowerVSNodePoolPlatform `json:"powervs,omitempty"`

	// openstack describes machines of OpenStack when type is OpenStack (TechPreview).
	//
	// +optional
	OpenStack *OpenstackNodePoolPlatform `json:"openstack,omitempty"`

	// gcp describes machines of Google Cloud when type is GCP (TechPreview).
	//
	// +optional
	GCP *GCPNodePoolPlatform `json:"gcp,omitempty"`
}

// AgentNodePoolPlatform selects machines from the pool of the assisted installer.
type AgentNodePoolPlatform struct {
	// agentLabelSelector selects Agents by their labels. Unset means any.
	//
	// +optional
	AgentLabelSelector *metav1.LabelSelector `json:"agentLabelSelector,omitempty"`
}

// PowerVSNodePoolProcType says how processors are shared.
//
// +kubebuilder:validation:Enum=dedicated;shared;capped
type PowerVSNodePoolProcType string

const (
	// PowerVSNodePoolDedicatedProcType gives processors to one machine alone.
	PowerVSNodePoolDedicatedProcType PowerVSNodePoolProcType = "dedicated"
	// PowerVSNodePoolSharedProcType shares processors, beyond the machine's part when they are idle.
	PowerVSNodePoolSharedProcType PowerVSNodePoolProcType = "shared"
	// PowerVSNodePoolCappedProcType shares processors, never beyond the machine's part.
	PowerVSNodePoolCappedProcType PowerVSNodePoolProcType = "capped"
)

// PowerVSNodePoolStorageType names a tier of storage.
//
// +kubebuilder:validation:Enum=tier1;tier3
type PowerVSNodePoolStorageType string

// PowerVSNodePoolImageDeletePolicy says what becomes of an imported image.
//
// +kubebuilder:validation:Enum=delete;retain
type PowerVSNodePoolImageDeletePolicy string

// PowerVSNodePoolPlatform describes machines of IBM Power Virtual Server.
type PowerVSNodePoolPlatform struct {
	// systemType is the model of host.
	//
	// +optional
	// +kubebuilder:default:="s922"
	// +kubebuilder:validation:MaxLength=255
	SystemType string `json:"systemType,omitempty"`

	// processorType says how processors are shared.
	//
	// +optional
	// +kubebuilder:default:="shared"
	ProcessorType PowerVSNodePoolProcType `json:"processorType,omitempty"`

	// processors is how many processors a machine gets: a whole number when they are dedicated, else a decimal one as text.
	//
	// +optional
	// +kubebuilder:default:="0.5"
	Processors intstr.IntOrString `json:"processors,omitzero"`

	// memoryGiB is the memory of a machine in GiB.
	//
	// +optional
	// +kubebuilder:default:=32
	MemoryGiB int32 `json:"memoryGiB,omitempty"`

	// image names the boot image. Unset means that of the release.
	//
	// +optional
	Image *PowerVSResourceReference `json:"image,omitempty"`

	// storageType is the tier of the boot volume and of the image.
	//
	// +optional
	// +kubebuilder:default:="tier1"
	StorageType PowerVSNodePoolStorageType `json:"storageType,omitempty"`

	// imageDeletePolicy says what becomes of an imported image when the pool goes.
	//
	// +optional
	// +kubebuilder:default:="delete"
	ImageDeletePolicy PowerVSNodePoolImageDeletePolicy `json:"imageDeletePolicy,omitempty"`
}
