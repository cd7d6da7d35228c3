package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AWSEndpointService asks for private access to one load balancer of a control plane on AWS. The control-plane operator makes
// one per load balancer and the endpoint for it; the hypershift operator makes the endpoint service.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=awsendpointservices,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type AWSEndpointService struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the load balancer.
	//
	// +optional
	Spec AWSEndpointServiceSpec `json:"spec,omitzero"`

	// status says what was made.
	//
	// +optional
	Status AWSEndpointServiceStatus `json:"status,omitzero"`
}

// AWSEndpointServiceList is a list of AWSEndpointServices.
//
// +kubebuilder:object:root=true
type AWSEndpointServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AWSEndpointService `json:"items"`
}

// AWSEndpointServiceSpec names the load balancer.
type AWSEndpointServiceSpec struct {
	// networkLoadBalancerName is the name of the network load balancer.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	NetworkLoadBalancerName string `json:"networkLoadBalancerName"`

	// subnetIDs lists the subnets that the endpoint is made in.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=63
	SubnetIDs []string `json:"subnetIDs,omitempty"`

	// resourceTags are put on the endpoint.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=25
	ResourceTags []AWSResourceTag `json:"resourceTags,omitempty"`
}

// AWSEndpointServiceStatus says what was made.
type AWSEndpointServiceStatus struct {
	// endpointServiceName is the name of the endpoint service.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	EndpointServiceName string `json:"endpointServiceName,omitempty"`

	// endpointID is the ID of the endpoint.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	EndpointID string `json:"endpointID,omitempty"`

	// dnsNames lists the names that point at the endpoint.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	DNSNames []string `json:"dnsNames,omitempty"`

	// securityGroupID is the security group of the endpoint.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	SecurityGroupID string `json:"securityGroupID,omitempty"`

	// dnsZoneID is the hosted zone of the names.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	DNSZoneID string `json:"dnsZoneID,omitempty"`

	// conditions are AWSEndpointServiceAvailable and AWSEndpointAvailable.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=10
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
