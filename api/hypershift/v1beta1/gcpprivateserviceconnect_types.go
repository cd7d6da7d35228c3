package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of a GCPPrivateServiceConnect besides GCPServiceAttachmentAvailable and GCPEndpointAvailable.
const (
	// GCPPrivateServiceConnectAvailable says whether private access works from end to end.
	GCPPrivateServiceConnectAvailable = "GCPPrivateServiceConnectAvailable"
	// GCPDNSAvailable says whether the private DNS records exist.
	GCPDNSAvailable = "GCPDNSAvailable"
)

// GCPPrivateServiceConnect asks for private access to the API server of a control plane on GCP (TechPreview).
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gcpprivateserviceconnects,shortName=gcppsc,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Service Attachment",type="string",JSONPath=".status.serviceAttachmentName",description="Name of the service attachment"
// +kubebuilder:printcolumn:name="Endpoint IP",type="string",JSONPath=".status.endpointIP",description="Address of the endpoint"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"GCPEndpointAvailable\")].status",description="Whether the endpoint exists"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type GCPPrivateServiceConnect struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where.
	//
	// +optional
	Spec GCPPrivateServiceConnectSpec `json:"spec,omitzero"`

	// status says what was made.
	//
	// +optional
	Status GCPPrivateServiceConnectStatus `json:"status,omitzero"`
}

// GCPPrivateServiceConnectList is a list of GCPPrivateServiceConnects.
//
// +kubebuilder:object:root=true
type GCPPrivateServiceConnectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GCPPrivateServiceConnect `json:"items"`
}

// GCPResourceName is the name of a resource in GCP.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must start with a lower-case letter and hold lower-case letters, digits and '-'"
type GCPResourceName string

// GCPProject is a project by its ID or its number.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=30
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z][a-z0-9-]{4,28}[a-z0-9]|[0-9]{1,30})$')",message="must be the ID or the number of a project"
type GCPProject string

// GCPPrivateServiceConnectSpec says where private access is made.
type GCPPrivateServiceConnectSpec struct {
	// loadBalancerIP is the address of the internal load balancer in front of the API server.
	//
	// +required
	LoadBalancerIP IPAddress `json:"loadBalancerIP"`

	// forwardingRuleName is the forwarding rule of that load balancer. The operator sets it.
	//
	// +optional
	ForwardingRuleName GCPResourceName `json:"forwardingRuleName,omitempty"`

	// consumerAcceptList lists projects that may connect.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	ConsumerAcceptList []GCPProject `json:"consumerAcceptList"`

	// natSubnet is the subnet for address translation. The operator sets it when it is unset.
	//
	// +optional
	NATSubnet GCPResourceName `json:"natSubnet,omitempty"`
}

// GCPPrivateServiceConnectStatus says what was made.
type GCPPrivateServiceConnectStatus struct {
	// conditions are GCPServiceAttachmentAvailable, GCPEndpointAvailable, GCPDNSAvailable and
	// GCPPrivateServiceConnectAvailable.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// serviceAttachmentName is the name of the service attachment.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ServiceAttachmentName string `json:"serviceAttachmentName,omitempty"`

	// serviceAttachmentURI is what endpoints connect to.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/regions/[a-z]+-[a-z]+[0-9]+/serviceAttachments/[a-z]([-a-z0-9]*[a-z0-9])?$')",message="serviceAttachmentURI must look like projects/{project}/regions/{region}/serviceAttachments/{name}"
	ServiceAttachmentURI string `json:"serviceAttachmentURI,omitempty"`

	// endpointIP is the address of the endpoint.
	//
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=39
	// +kubebuilder:validation:XValidation:rule="self.matches('^(((25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])[.]){3}(25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])|(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:(:[0-9a-fA-F]{1,4}){1,6}|:((:[0-9a-fA-F]{1,4}){1,7}|:)))$') && !self.matches('^[0:]*:[fF]{4}(:[0-9a-fA-F]{1,4}){2}$')",message="endpointIP must be an IPv4 or IPv6 address"
	EndpointIP string `json:"endpointIP,omitempty"`

	// dnsZones lists the private DNS zones and their records.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	DNSZones []DNSZoneStatus `json:"dnsZones,omitempty"`
}

// DNSZoneStatus is a private DNS zone and its records.
type DNSZoneStatus struct {
	// name is the name of the zone.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// records lists names in the zone.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	Records []string `json:"records,omitempty"`
}
