package v1beta1

// AutoNode has machines made one by one as pods need them, instead of by NodePools.
type AutoNode struct {
	// provisionerConfig says what makes them.
	//
	// +required
	Provisioner ProvisionerConfig `json:"provisionerConfig"`
}

// Provisioner names what makes machines.
//
// +kubebuilder:validation:Enum=Karpenter
type Provisioner string

// ProvisionerKarpenter is Karpenter.
const ProvisionerKarpenter Provisioner = "Karpenter"

// ProvisionerConfig is a union over name.
//
// +kubebuilder:validation:XValidation:rule="self.name == 'Karpenter' ? has(self.karpenter) : !has(self.karpenter)",message="karpenter is required when name is Karpenter, and forbidden otherwise"
type ProvisionerConfig struct {
	// name names what makes machines.
	//
	// +required
	Name Provisioner `json:"name"`

	// karpenter configures Karpenter when name is Karpenter.
	//
	// +optional
	Karpenter *KarpenterConfig `json:"karpenter,omitempty"`
}

// KarpenterConfig is a union over platform.
//
// +kubebuilder:validation:XValidation:rule="self.platform == 'AWS' ? has(self.aws) : !has(self.aws)",message="aws is required when platform is AWS, and forbidden otherwise"
type KarpenterConfig struct {
	// platform names the cloud.
	//
	// +required
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Enum=AWS;Local
	Platform KarpenterPlatformType `json:"platform"`

	// aws configures Karpenter on AWS.
	//
	// +optional
	AWS *KarpenterAWSConfig `json:"aws,omitempty"`
}

// KarpenterPlatformType names a cloud that Karpenter makes machines in.
type KarpenterPlatformType string

const (
	// KarpenterAWSPlatform is Amazon Web Services.
	KarpenterAWSPlatform KarpenterPlatformType = "AWS"
	// KarpenterLocalPlatform is platform Local: machines are pods of the management cluster.
	KarpenterLocalPlatform KarpenterPlatformType = "Local"
)

// KarpenterAWSConfig configures Karpenter on AWS.
type KarpenterAWSConfig struct {
	// roleARN is the role that Karpenter assumes.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role/.+$')",message="roleARN must look like arn:aws:iam::123456789012:role/name"
	RoleARN string `json:"roleARN"`
}

// AutoNodeStatus counts what was made.
//
// +kubebuilder:validation:MinProperties=1
type AutoNodeStatus struct {
	// nodeCount is how many nodes there are.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeCount *int32 `json:"nodeCount,omitempty"`

	// nodeClaimCount is how many machines there are, with those that are not nodes yet.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeClaimCount *int32 `json:"nodeClaimCount,omitempty"`

	// vcpus is how many processors the nodes have together.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	VCPUs *int32 `json:"vcpus,omitempty"`
}
