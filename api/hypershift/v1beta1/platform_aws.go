package v1beta1

// AWSPlatformSpec describes Amazon Web Services.
type AWSPlatformSpec struct {
	// region is the AWS region that machines live in.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Region string `json:"region"`

	// cloudProviderConfig says where in the region load balancers and volumes are made.
	//
	// +optional
	CloudProviderConfig *AWSCloudProviderConfig `json:"cloudProviderConfig,omitempty"`

	// serviceEndpoints replaces endpoints of AWS services.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=50
	ServiceEndpoints []AWSServiceEndpoint `json:"serviceEndpoints,omitempty"`

	// rolesRef names the roles that components assume by their service account tokens.
	//
	// +required
	RolesRef AWSRolesRef `json:"rolesRef"`

	// resourceTags are put on everything that is made in AWS.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=25
	ResourceTags []AWSClusterResourceTag `json:"resourceTags,omitempty"`

	// endpointAccess says from where the API server is reached. Changing it is supported, except from or to Public.
	//
	// +optional
	// +kubebuilder:default:="Public"
	EndpointAccess AWSEndpointAccessType `json:"endpointAccess,omitempty"`

	// additionalAllowedPrincipals lists ARNs that may connect VPC endpoints to the cluster's endpoint services.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=25
	// +kubebuilder:validation:items:MaxLength=255
	AdditionalAllowedPrincipals []string `json:"additionalAllowedPrincipals,omitempty"`

	// multiArch says that NodePools may have different architectures. The release must then be multi-architecture.
	//
	// +optional
	// +kubebuilder:default:=false
	MultiArch bool `json:"multiArch"`

	// sharedVPC says that another account owns the VPC.
	//
	// +optional
	SharedVPC *AWSSharedVPC `json:"sharedVPC,omitempty"`

	// terminationHandlerQueueURL is the SQS queue that tells of Spot instances about to end.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https://sqs\.[a-z0-9-]+\.amazonaws\.com/[0-9]{12}/[a-zA-Z0-9_-]+(\.fifo)?$`
	TerminationHandlerQueueURL *string `json:"terminationHandlerQueueURL,omitempty"`
}

// AWSEndpointAccessType says from where the API server is reached.
//
// +kubebuilder:validation:Enum=Public;PublicAndPrivate;Private
type AWSEndpointAccessType string

const (
	// Public serves on the internet, to nodes too.
	Public AWSEndpointAccessType = "Public"
	// PublicAndPrivate serves on the internet, and to nodes by PrivateLink.
	PublicAndPrivate AWSEndpointAccessType = "PublicAndPrivate"
	// Private serves by PrivateLink only.
	Private AWSEndpointAccessType = "Private"
)

// AWSCloudProviderConfig says where in a region load balancers and volumes are made.
type AWSCloudProviderConfig struct {
	// subnet is where load balancers are made.
	//
	// +optional
	Subnet *AWSResourceReference `json:"subnet,omitempty"`

	// zone is the availability zone for volumes.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Zone string `json:"zone,omitempty"`

	// vpc is the VPC of the cluster.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	VPC string `json:"vpc"`
}

// AWSResourceReference names an AWS resource by its ID or by filters that only it passes.
type AWSResourceReference struct {
	// id is the ID of the resource.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ID *string `json:"id,omitempty"`

	// filters are used when id is unset.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=50
	Filters []Filter `json:"filters,omitempty"`
}

// Filter is one filter of an AWS query.
type Filter struct {
	// name is the name of the filter; it is case-sensitive.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`

	// values lists what may match; it is case-sensitive.
	//
	// +required
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=255
	Values []string `json:"values"`
}

// AWSServiceEndpoint replaces the endpoint of an AWS service.
type AWSServiceEndpoint struct {
	// name is the name of the service.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`

	// url is the endpoint; it must start with https://.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https://`
	URL string `json:"url"`
}

// AWSRolesRef names roles by their ARNs. Each must trust the OIDC provider of the cluster.
type AWSRolesRef struct {
	// ingressARN is the role of OpenShift's ingress operator: DNS records and load balancers.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	IngressARN string `json:"ingressARN"`

	// imageRegistryARN is the role of OpenShift's image registry: its bucket.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	ImageRegistryARN string `json:"imageRegistryARN"`

	// storageARN is the role of the EBS driver: volumes and snapshots.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	StorageARN string `json:"storageARN"`

	// networkARN is the role of OpenShift's cloud network config controller: addresses of instances.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	NetworkARN string `json:"networkARN"`

	// kubeCloudControllerARN is the role of the cloud controller manager: load balancers and instances.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	KubeCloudControllerARN string `json:"kubeCloudControllerARN"`

	// nodePoolManagementARN is the role of the Cluster API provider: instances.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	NodePoolManagementARN string `json:"nodePoolManagementARN"`

	// controlPlaneOperatorARN is the role of the control-plane operator: VPC endpoints, security groups, DNS records.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	ControlPlaneOperatorARN string `json:"controlPlaneOperatorARN"`
}

// AWSResourceTag is put on resources in AWS.
type AWSResourceTag struct {
	// key is the key of the tag.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_.:/=+@-]+$')",message="key may hold letters, digits and _.:/=+@-"
	Key string `json:"key"`

	// value is the value of the tag. Not every AWS service accepts an empty one.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_.:/=+@-]+$')",message="value may hold letters, digits and _.:/=+@-"
	Value string `json:"value"`
}

// AWSTagOverridePolicy says whether a NodePool may give a tag another value.
//
// +kubebuilder:validation:Enum=Allow;Deny
type AWSTagOverridePolicy string

const (
	// AWSTagOverrideAllow lets NodePools give the tag another value.
	AWSTagOverrideAllow AWSTagOverridePolicy = "Allow"
	// AWSTagOverrideDeny does not; a NodePool that tries has the condition AWSResourceTagConflict.
	AWSTagOverrideDeny AWSTagOverridePolicy = "Deny"
)

// AWSClusterResourceTag is put on resources in AWS, and says whether NodePools may change it.
type AWSClusterResourceTag struct {
	AWSResourceTag `json:",inline"`

	// overridePolicy says whether a NodePool may give the tag another value. Unset means Allow.
	//
	// +optional
	OverridePolicy AWSTagOverridePolicy `json:"overridePolicy,omitempty"`
}

// AWSSharedVPC describes a VPC of another account.
type AWSSharedVPC struct {
	// rolesRef names roles in the account that owns the VPC.
	//
	// +required
	RolesRef AWSSharedVPCRolesRef `json:"rolesRef"`

	// localZoneID is the hosted zone for {name}.hypershift.local in the account that owns the VPC.
	//
	// +required
	// +kubebuilder:validation:MaxLength=32
	LocalZoneID string `json:"localZoneID"`
}

// AWSSharedVPCRolesRef names roles in the account that owns a shared VPC.
type AWSSharedVPCRolesRef struct {
	// ingressARN is the role for records in the private hosted zone of the base domain.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role\/.*$`
	IngressARN string `json:"ingressARN"`

	// controlPlaneARN is the role for VPC endpoints and records in the local zone.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role\/.*$`
	ControlPlaneARN string `json:"controlPlaneARN"`
}

// AWSPlatformStatus is what was found in AWS.
type AWSPlatformStatus struct {
	// defaultWorkerSecurityGroupID is the security group that workers get besides those of their NodePool.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	DefaultWorkerSecurityGroupID string `json:"defaultWorkerSecurityGroupID,omitempty"`
}
