package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AzurePrivateLinkService asks for private access to the API server of a control plane on Azure. The control-plane operator
// makes one; it and the hypershift operator make what it asks for.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=azureprivatelinkservices,shortName=azpls,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="PLS Alias",type="string",JSONPath=".status.privateLinkServiceAlias",description="Alias of the Private Link service"
// +kubebuilder:printcolumn:name="Endpoint IP",type="string",JSONPath=".status.privateEndpointIP",description="Address of the private endpoint"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"AzurePrivateLinkServiceAvailable\")].status",description="Whether private access works"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type AzurePrivateLinkService struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where.
	//
	// +required
	Spec AzurePrivateLinkServiceSpec `json:"spec,omitzero"`

	// status says what was made.
	//
	// +optional
	Status AzurePrivateLinkServiceStatus `json:"status,omitzero"`
}

// AzurePrivateLinkServiceList is a list of AzurePrivateLinkServices.
//
// +kubebuilder:object:root=true
type AzurePrivateLinkServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AzurePrivateLinkService `json:"items"`
}

// AzureDNSName is a DNS name.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*$')`,message="must be a DNS name such as example.com"
type AzureDNSName string

// IPAddress is an IPv4 or IPv6 address.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=39
// +kubebuilder:validation:XValidation:rule="self.matches('^(((25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])[.]){3}(25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])|(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:(:[0-9a-fA-F]{1,4}){1,6}|:((:[0-9a-fA-F]{1,4}){1,7}|:)))$') && !self.matches('^[0:]*:[fF]{4}(:[0-9a-fA-F]{1,4}){2}$')",message="must be an IPv4 or IPv6 address"
type IPAddress string

// AzurePrivateDNSZoneID is the resource ID of a private DNS zone.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=265
// +kubebuilder:validation:XValidation:rule=`self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\\.Network/privateDnsZones/[^/]+$')`,message="must look like /subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/privateDnsZones/{zone}"
type AzurePrivateDNSZoneID string

// AzurePrivateLinkServiceSpec says where private access is made. Only loadBalancerIP and additionalAllowedSubscriptions may
// change.
type AzurePrivateLinkServiceSpec struct {
	// loadBalancerIP is the address of the internal load balancer in front of the API server. The control-plane operator
	// sets it when there is one.
	//
	// +optional
	LoadBalancerIP IPAddress `json:"loadBalancerIP,omitempty"`

	// subscriptionID is the subscription of the control plane. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="subscriptionID is immutable"
	SubscriptionID AzureSubscriptionID `json:"subscriptionID"`

	// resourceGroupName is the resource group that the Private Link service is made in. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=90
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="resourceGroupName is immutable"
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^[-a-zA-Z0-9_.()]+$') && !self.endsWith('.')",message="resourceGroupName may hold letters, digits and -_.() and cannot end with a period"
	ResourceGroupName string `json:"resourceGroupName"`

	// location is the Azure region. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="location is immutable"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+$')",message="location may hold lower-case letters and digits only"
	Location string `json:"location"`

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

	// guestSubnetID is the resource ID of the subnet that the private endpoint is made in. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="guestSubnetID is immutable"
	GuestSubnetID AzureSubnetResourceID `json:"guestSubnetID"`

	// guestVNetID is the resource ID of the virtual network of the hosted cluster. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=355
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="guestVNetID is immutable"
	// +kubebuilder:validation:XValidation:rule=`self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\\.Network/virtualNetworks/[^/]+$')`,message="guestVNetID must look like /subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/{network}"
	GuestVNetID string `json:"guestVNetID"`

	// baseDomain is the suffix of the names of the hosted cluster. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="baseDomain is immutable"
	BaseDomain AzureDNSName `json:"baseDomain,omitempty"`
}

// AzurePrivateLinkServiceStatus says what was made.
//
// +kubebuilder:validation:MinProperties=1
type AzurePrivateLinkServiceStatus struct {
	// conditions are AzureInternalLoadBalancerAvailable, AzurePLSCreated, AzurePrivateEndpointAvailable,
	// AzurePrivateDNSAvailable and AzurePrivateLinkServiceAvailable.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// internalLoadBalancerID is the resource ID of the internal load balancer.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=284
	// +kubebuilder:validation:XValidation:rule=`self.matches('^/subscriptions/[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}/resourceGroups/[^/]+/providers/Microsoft\\.Network/loadBalancers/[^/]+$')`,message="internalLoadBalancerID must look like /subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/loadBalancers/{balancer}"
	InternalLoadBalancerID string `json:"internalLoadBalancerID,omitempty"`

	// privateLinkServiceID is the resource ID of the Private Link service.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=270
	// +kubebuilder:validation:XValidation:rule=`self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\\.Network/privateLinkServices/[^/]+$')`,message="privateLinkServiceID must look like /subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/privateLinkServices/{service}"
	PrivateLinkServiceID string `json:"privateLinkServiceID,omitempty"`

	// privateLinkServiceAlias is the name by which other subscriptions connect.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=170
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[^.]+\\.[0-9a-fA-F-]+\\.[a-z0-9]+\\.azure\\.privatelinkservice$')`,message="privateLinkServiceAlias must look like {name}.{id}.{region}.azure.privatelinkservice"
	PrivateLinkServiceAlias string `json:"privateLinkServiceAlias,omitempty"`

	// privateEndpointID is the resource ID of the private endpoint.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=267
	// +kubebuilder:validation:XValidation:rule=`self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\\.Network/privateEndpoints/[^/]+$')`,message="privateEndpointID must look like /subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/privateEndpoints/{endpoint}"
	PrivateEndpointID string `json:"privateEndpointID,omitempty"`

	// privateEndpointIP is the address of the private endpoint.
	//
	// +optional
	PrivateEndpointIP IPAddress `json:"privateEndpointIP,omitempty"`

	// privateDNSZoneID is the resource ID of the private DNS zone for the API server.
	//
	// +optional
	PrivateDNSZoneID AzurePrivateDNSZoneID `json:"privateDNSZoneID,omitempty"`

	// dnsZoneName is the name of that zone.
	//
	// +optional
	DNSZoneName AzureDNSName `json:"dnsZoneName,omitempty"`

	// baseDomainDNSZoneID is the resource ID of the private DNS zone for the base domain.
	//
	// +optional
	BaseDomainDNSZoneID AzurePrivateDNSZoneID `json:"baseDomainDNSZoneID,omitempty"`
}
