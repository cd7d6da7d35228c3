package v1beta1

// AzureClientID is the client ID of an identity: a UUID.
//
// +kubebuilder:validation:MinLength=36
// +kubebuilder:validation:MaxLength=36
// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$')",message="a client ID must be a UUID: 8-4-4-4-12 hexadecimal digits"
type AzureClientID string

// AzureSubscriptionID is the ID of a subscription: a UUID.
//
// +kubebuilder:validation:MinLength=36
// +kubebuilder:validation:MaxLength=36
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$')",message="a subscription ID must be a UUID: 8-4-4-4-12 hexadecimal digits"
type AzureSubscriptionID string

// AzureSubnetResourceID is the resource ID of a subnet.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=355
// +kubebuilder:validation:XValidation:rule=`self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\\.Network/virtualNetworks/[^/]+/subnets/[^/]+$')`,message="a subnet ID must look like /subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/{network}/subnets/{subnet}"
type AzureSubnetResourceID string

// AzurePlatformSpec describes Microsoft Azure.
//
// +kubebuilder:validation:XValidation:rule="has(self.private) == has(oldSelf.private)",message="private cannot be added or removed after creation"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.topology) || has(self.topology)",message="topology cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(self.topology) || !has(oldSelf.topology) || (self.topology == 'Public') == (oldSelf.topology == 'Public')",message="topology cannot change from or to Public"
// +kubebuilder:validation:XValidation:rule="has(self.topology) && (self.topology == 'Private' || self.topology == 'PublicAndPrivate') ? has(self.private) : !has(self.private)",message="private is required when topology is Private or PublicAndPrivate, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.private) || self.private.type != 'PrivateLink' || self.azureAuthenticationConfig.azureAuthenticationConfigType != 'WorkloadIdentities' || !has(self.azureAuthenticationConfig.workloadIdentities) || has(self.azureAuthenticationConfig.workloadIdentities.controlPlaneOperator)",message="azureAuthenticationConfig.workloadIdentities.controlPlaneOperator is required when private.type is PrivateLink"
type AzurePlatformSpec struct {
	// cloud names the Azure cloud.
	//
	// +optional
	// +kubebuilder:default:="AzurePublicCloud"
	// +kubebuilder:validation:Enum=AzurePublicCloud;AzureUSGovernmentCloud;AzureChinaCloud;AzureGermanCloud;AzureBleuCloud;AzureStackCloud
	Cloud string `json:"cloud,omitempty"`

	// location is the Azure region that machines live in. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="location is immutable"
	Location string `json:"location"`

	// resourceGroup is the resource group that the cluster's resources are made in; it must exist. It cannot change.
	//
	// +required
	// +kubebuilder:default:="default"
	// +kubebuilder:validation:MaxLength=90
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_()\-\.]{1,89}[a-zA-Z0-9_()\-]$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="resourceGroup is immutable"
	ResourceGroupName string `json:"resourceGroup"`

	// vnetID is the resource ID of the virtual network. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="vnetID is immutable"
	VnetID string `json:"vnetID"`

	// subnetID is the resource ID of the subnet of machines and load balancers. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=355
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) == 11 && self.matches('^/subscriptions/.*/resourceGroups/.*/providers/Microsoft.Network/virtualNetworks/.*/subnets/.*$')",message="subnetID must look like /subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/{network}/subnets/{subnet}"
	// +kubebuilder:validation:XValidation:rule=`size(self.split('/')) != 11 || self.split('/')[4].matches('[a-zA-Z0-9-_\\(\\)\\.]{1,90}')`,message="the resource group in subnetID must be 1 to 90 letters, digits and -_()."
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) != 11 || !self.split('/')[4].endsWith('.')",message="the resource group in subnetID cannot end with a period"
	// +kubebuilder:validation:XValidation:rule=`size(self.split('/')) != 11 || self.split('/')[8].matches('[a-zA-Z0-9-_\\.]{2,64}')`,message="the virtual network in subnetID must be 2 to 64 letters, digits and -_."
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) != 11 || (!self.split('/')[8].endsWith('.') && !self.split('/')[8].endsWith('-'))",message="the virtual network in subnetID cannot end with a period or a hyphen"
	// +kubebuilder:validation:XValidation:rule=`size(self.split('/')) != 11 || self.split('/')[10].matches('[a-zA-Z0-9][a-zA-Z0-9-_\\.]{0,79}')`,message="the subnet in subnetID must be 1 to 80 letters, digits and -_. and start with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) != 11 || (!self.split('/')[10].endsWith('.') && !self.split('/')[10].endsWith('-'))",message="the subnet in subnetID cannot end with a period or a hyphen"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="subnetID is immutable"
	SubnetID string `json:"subnetID"`

	// subscriptionID is the Azure subscription. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="subscriptionID is immutable"
	SubscriptionID string `json:"subscriptionID"`

	// securityGroupID is the resource ID of the network security group. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="securityGroupID is immutable"
	SecurityGroupID string `json:"securityGroupID"`

	// azureAuthenticationConfig says how components prove themselves to Azure.
	//
	// +required
	AzureAuthenticationConfig AzureAuthenticationConfiguration `json:"azureAuthenticationConfig"`

	// tenantID is the Microsoft Entra tenant.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	TenantID string `json:"tenantID"`

	// topology says from where the API server is reached. It cannot change from or to Public. Unset means Public.
	//
	// +optional
	Topology AzureTopologyType `json:"topology,omitempty"`

	// private says how it is reached from inside the virtual network.
	//
	// +optional
	Private *AzurePrivateSpec `json:"private,omitempty"`

	// containerRegistry says how nodes log in to Azure Container Registry.
	//
	// +optional
	ContainerRegistry *AzureContainerRegistry `json:"containerRegistry,omitempty"`
}

// AzureTopologyType says from where the API server is reached.
//
// +kubebuilder:validation:Enum=Public;PublicAndPrivate;Private
type AzureTopologyType string

const (
	// AzureTopologyPublic serves on the internet, to nodes too.
	AzureTopologyPublic AzureTopologyType = "Public"
	// AzureTopologyPublicAndPrivate serves on the internet, and to nodes inside the virtual network.
	AzureTopologyPublicAndPrivate AzureTopologyType = "PublicAndPrivate"
	// AzureTopologyPrivate serves inside the virtual network only.
	AzureTopologyPrivate AzureTopologyType = "Private"
)

// AzurePrivateType names a way into a virtual network.
//
// +kubebuilder:validation:Enum=PrivateLink;Swift
type AzurePrivateType string

const (
	// AzurePrivateTypePrivateLink uses a Private Link service.
	AzurePrivateTypePrivateLink AzurePrivateType = "PrivateLink"
	// AzurePrivateTypeSwift puts a network interface of the virtual network into router pods.
	AzurePrivateTypeSwift AzurePrivateType = "Swift"
)

// AzurePrivateSpec is a union over type.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.type) || self.type == oldSelf.type",message="type is immutable"
// +kubebuilder:validation:XValidation:rule="self.type == 'PrivateLink' ? has(self.privateLink) : !has(self.privateLink)",message="privateLink is required when type is PrivateLink, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="self.type == 'Swift' ? has(self.swift) : !has(self.swift)",message="swift is required when type is Swift, and forbidden otherwise"
type AzurePrivateSpec struct {
	// type names the way. It cannot change.
	//
	// +required
	Type AzurePrivateType `json:"type"`

	// privateLink configures type PrivateLink.
	//
	// +optional
	PrivateLink *AzurePrivateLinkSpec `json:"privateLink,omitempty"`

	// swift configures type Swift.
	//
	// +optional
	Swift *AzureSwiftSpec `json:"swift,omitempty"`
}

// AzurePrivateLinkSpec configures a Private Link service.
//
// +kubebuilder:validation:MinProperties=1
type AzurePrivateLinkSpec struct {
	// natSubnetID is the resource ID of the subnet for address translation. Unset means that one is made. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="natSubnetID is immutable"
	NATSubnetID AzureSubnetResourceID `json:"natSubnetID,omitempty"`

	// additionalAllowedSubscriptions lists subscriptions, besides that of the cluster, that may connect.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	AdditionalAllowedSubscriptions []AzureSubscriptionID `json:"additionalAllowedSubscriptions,omitempty"`
}

// AzureSwiftSpec configures network interfaces of router pods.
//
// +kubebuilder:validation:XValidation:rule="self.podNetworkInstance == oldSelf.podNetworkInstance",message="podNetworkInstance is immutable"
type AzureSwiftSpec struct {
	// podNetworkInstance names the PodNetworkInstance of the management cluster. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="podNetworkInstance must consist of lower-case letters, digits and '-', and start and end with a letter or digit"
	PodNetworkInstance string `json:"podNetworkInstance"`
}

// AzureContainerRegistry says how nodes log in to Azure Container Registry.
type AzureContainerRegistry struct {
	// credentials says what they prove themselves with.
	//
	// +required
	Credentials AzureContainerRegistryCredentials `json:"credentials"`
}

// AzureContainerRegistryCredentials is a union over type.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'ManagedIdentity' ? has(self.managedIdentity) : !has(self.managedIdentity)",message="managedIdentity is required when type is ManagedIdentity, and forbidden otherwise"
type AzureContainerRegistryCredentials struct {
	// type names the kind of credentials.
	//
	// +required
	// +kubebuilder:validation:Enum=ManagedIdentity
	Type string `json:"type"`

	// managedIdentity is the identity when type is ManagedIdentity.
	//
	// +optional
	ManagedIdentity *AzureContainerRegistryManagedIdentity `json:"managedIdentity,omitempty"`
}

// AzureContainerRegistryManagedIdentity names a user-assigned identity of nodes.
type AzureContainerRegistryManagedIdentity struct {
	// resourceID is the resource ID of the identity.
	//
	// +required
	// +kubebuilder:validation:MinLength=131
	// +kubebuilder:validation:MaxLength=345
	// +kubebuilder:validation:XValidation:rule=`self.lowerAscii().matches('^/subscriptions/[^/]+/resourcegroups/[^/]+/providers/microsoft\\.managedidentity/userassignedidentities/[^/]+$')`,message="resourceID must look like /subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{identity}"
	ResourceID string `json:"resourceID"`
}
