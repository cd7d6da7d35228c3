package v1beta1

// OpenStackPlatformSpec describes OpenStack.
type OpenStackPlatformSpec struct {
	// identityRef names the Secret with credentials.
	//
	// +required
	IdentityRef OpenStackIdentityReference `json:"identityRef"`

	// managedSubnets describes the subnet that is made for machines. It excludes subnets.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1
	ManagedSubnets []SubnetSpec `json:"managedSubnets,omitempty"`

	// router names an existing router. Unset means that one is made.
	//
	// +optional
	Router *RouterParam `json:"router,omitempty"`

	// network names an existing network. Unset means that one is made.
	//
	// +optional
	Network *NetworkParam `json:"network,omitempty"`

	// subnets names existing subnets, one per address family. Unset means that one is made.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Subnets []SubnetParam `json:"subnets,omitempty"`

	// networkMTU is the MTU of the network that is made, in bytes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1500
	// +kubebuilder:validation:Maximum=9000
	NetworkMTU *int `json:"networkMTU,omitempty"`

	// externalNetwork names the network to the outside. It may be unset when there is one.
	//
	// +optional
	ExternalNetwork *NetworkParam `json:"externalNetwork,omitempty"`

	// disableExternalNetwork leaves the cluster without a network to the outside.
	//
	// +optional
	DisableExternalNetwork *bool `json:"disableExternalNetwork,omitempty"`

	// tags are put on everything that is made in OpenStack.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=255
	Tags []string `json:"tags,omitempty"`

	// ingressFloatingIP is the address of the default ingress. Unset means that one is chosen.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="self.matches('^(((25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])[.]){3}(25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])|(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:(:[0-9a-fA-F]{1,4}){1,6}|:((:[0-9a-fA-F]{1,4}){1,7}|:)))$') && !self.matches('^[0:]*:[fF]{4}(:[0-9a-fA-F]{1,4}){2}$')",message="ingressFloatingIP must be an IPv4 or IPv6 address"
	IngressFloatingIP string `json:"ingressFloatingIP,omitempty"`
}

// OpenStackIdentityReference names credentials.
type OpenStackIdentityReference struct {
	// name names a Secret whose key clouds.yaml holds credentials, and whose key cacert may hold an authority.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`

	// cloudName names the entry of clouds.yaml.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	CloudName string `json:"cloudName"`
}

// SubnetSpec describes a subnet that is made.
type SubnetSpec struct {
	// dnsNameservers lists name servers.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=45
	DNSNameservers []string `json:"dnsNameservers,omitempty"`

	// allocationPools lists ranges that machines get addresses from. Unset means the whole subnet.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	AllocationPools []AllocationPool `json:"allocationPools,omitempty"`
}

// AllocationPool is a range of addresses, both ends included.
type AllocationPool struct {
	// start is the first address.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Start string `json:"start"`

	// end is the last address.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	End string `json:"end"`
}

// OpenStackID is the ID of a resource: a UUID.
//
// +kubebuilder:validation:Format=uuid
// +kubebuilder:validation:MaxLength=36
type OpenStackID string

// RouterParam names a router by its ID or by a filter that only it passes.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type RouterParam struct {
	// id is the ID.
	//
	// +optional
	ID *OpenStackID `json:"id,omitempty"`

	// filter is the filter.
	//
	// +optional
	Filter *NeutronFilter `json:"filter,omitempty"`
}

// NetworkParam names a network by its ID or by a filter that only it passes.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type NetworkParam struct {
	// id is the ID.
	//
	// +optional
	ID *OpenStackID `json:"id,omitempty"`

	// filter is the filter.
	//
	// +optional
	Filter *NeutronFilter `json:"filter,omitempty"`
}

// SubnetParam names a subnet by its ID or by a filter that only it passes.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type SubnetParam struct {
	// id is the ID.
	//
	// +optional
	ID *OpenStackID `json:"id,omitempty"`

	// filter is the filter.
	//
	// +optional
	Filter *SubnetFilter `json:"filter,omitempty"`
}

// NeutronTag is a tag; it holds no comma.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:Pattern=`^[^,]+$`
type NeutronTag string

// FilterByNeutronTags selects resources by their tags.
type FilterByNeutronTags struct {
	// tags lists tags; all must be there.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	Tags []NeutronTag `json:"tags,omitempty"`

	// tagsAny lists tags; one must be there.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	TagsAny []NeutronTag `json:"tagsAny,omitempty"`

	// notTags lists tags; not all may be there.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	NotTags []NeutronTag `json:"notTags,omitempty"`

	// notTagsAny lists tags; none may be there.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	NotTagsAny []NeutronTag `json:"notTagsAny,omitempty"`
}

// NeutronFilter selects routers and networks.
//
// +kubebuilder:validation:MinProperties=1
type NeutronFilter struct {
	// name selects by name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name,omitempty"`

	// description selects by description.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Description string `json:"description,omitempty"`

	// projectID selects by project.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ProjectID string `json:"projectID,omitempty"`

	FilterByNeutronTags `json:",inline"`
}

// SubnetFilter selects subnets.
//
// +kubebuilder:validation:MinProperties=1
type SubnetFilter struct {
	// name selects by name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name,omitempty"`

	// description selects by description.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Description string `json:"description,omitempty"`

	// projectID selects by project.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ProjectID string `json:"projectID,omitempty"`

	// ipVersion selects by address family: 4 or 6.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	IPVersion int `json:"ipVersion,omitempty"`

	// gatewayIP selects by the address of the gateway.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=45
	GatewayIP string `json:"gatewayIP,omitempty"`

	// cidr selects by network.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=45
	CIDR string `json:"cidr,omitempty"`

	// ipv6AddressMode selects by the way machines get IPv6 addresses.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	IPv6AddressMode string `json:"ipv6AddressMode,omitempty"`

	// ipv6RAMode selects by the way routers are advertised.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	IPv6RAMode string `json:"ipv6RAMode,omitempty"`

	FilterByNeutronTags `json:",inline"`
}

// OpenstackNodePoolPlatform describes machines of OpenStack.
type OpenstackNodePoolPlatform struct {
	// flavor is the flavor of machines.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Flavor string `json:"flavor"`

	// imageName names the boot image. Unset means that of the release.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ImageName string `json:"imageName,omitempty"`

	// availabilityZone is the zone of machines. Unset means that OpenStack chooses.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[^: ]*$`
	AvailabilityZone string `json:"availabilityZone,omitempty"`

	// additionalPorts lists network interfaces besides that of the cluster's network.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	AdditionalPorts []PortSpec `json:"additionalPorts,omitempty"`
}

// PortSecurityPolicy says whether OpenStack checks the addresses that a port uses.
//
// +kubebuilder:validation:Enum=Enabled;Disabled;""
type PortSecurityPolicy string

// PortSpec describes a network interface.
type PortSpec struct {
	// network names the network of the port.
	//
	// +optional
	Network *NetworkParam `json:"network,omitempty"`

	// description goes into the port.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Description string `json:"description,omitempty"`

	// allowedAddressPairs lists addresses that the port may use besides its own.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	AllowedAddressPairs []AddressPair `json:"allowedAddressPairs,omitempty"`

	// vnicType is the kind of virtual interface.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	VNICType string `json:"vnicType,omitempty"`

	// portSecurityPolicy says whether OpenStack checks the addresses that the port uses. Unset means as the network has it.
	//
	// +optional
	PortSecurityPolicy PortSecurityPolicy `json:"portSecurityPolicy,omitempty"`
}

// AddressPair is an address that a port may use.
type AddressPair struct {
	// ipAddress is an address or a network.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	IPAddress string `json:"ipAddress"`
}
