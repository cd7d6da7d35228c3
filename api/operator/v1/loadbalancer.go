package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LoadBalancerProviderType names a cloud.
//
// +kubebuilder:validation:Enum=AWS;Azure;BareMetal;GCP;Nutanix;OpenStack;VSphere;IBM
type LoadBalancerProviderType string

// ProviderLoadBalancerParameters is a union over type.
//
// +union
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'OpenStack' ? true : !has(self.openstack)",message="openstack is allowed only when type is OpenStack"
type ProviderLoadBalancerParameters struct {
	// type names the cloud.
	//
	// +unionDiscriminator
	// +required
	Type LoadBalancerProviderType `json:"type"`

	// aws describes load balancers of AWS.
	//
	// +optional
	AWS *AWSLoadBalancerParameters `json:"aws,omitempty"`

	// gcp describes load balancers of GCP.
	//
	// +optional
	GCP *GCPLoadBalancerParameters `json:"gcp,omitempty"`

	// ibm describes load balancers of IBM Cloud.
	//
	// +optional
	IBM *IBMLoadBalancerParameters `json:"ibm,omitempty"`

	// openstack describes load balancers of OpenStack.
	//
	// +optional
	OpenStack *OpenStackLoadBalancerParameters `json:"openstack,omitempty"`
}

// AWSLoadBalancerType names a kind of load balancer of AWS.
//
// +kubebuilder:validation:Enum=Classic;NLB
type AWSLoadBalancerType string

const (
	// AWSClassicLoadBalancer is a classic load balancer.
	AWSClassicLoadBalancer AWSLoadBalancerType = "Classic"
	// AWSNetworkLoadBalancer is a network load balancer.
	AWSNetworkLoadBalancer AWSLoadBalancerType = "NLB"
)

// AWSLoadBalancerParameters is a union over type.
//
// +union
type AWSLoadBalancerParameters struct {
	// type names the kind.
	//
	// +unionDiscriminator
	// +required
	Type AWSLoadBalancerType `json:"type"`

	// classicLoadBalancer configures type Classic.
	//
	// +optional
	ClassicLoadBalancerParameters *AWSClassicLoadBalancerParameters `json:"classicLoadBalancer,omitempty"`

	// networkLoadBalancer configures type NLB.
	//
	// +optional
	NetworkLoadBalancerParameters *AWSNetworkLoadBalancerParameters `json:"networkLoadBalancer,omitempty"`
}

// AWSClassicLoadBalancerParameters configures a classic load balancer.
type AWSClassicLoadBalancerParameters struct {
	// connectionIdleTimeout is how long a connection may be idle, as a Go duration. Unset means 60s.
	//
	// +optional
	// +kubebuilder:validation:Format=duration
	ConnectionIdleTimeout metav1.Duration `json:"connectionIdleTimeout,omitzero"`

	// subnets says where the load balancer is made. Unset means in every public or private subnet, as scope asks for.
	//
	// +optional
	Subnets *AWSSubnets `json:"subnets,omitempty"`
}

// AWSNetworkLoadBalancerParameters configures a network load balancer.
//
// +kubebuilder:validation:XValidation:rule="has(self.subnets) && has(self.subnets.ids) && has(self.subnets.names) && has(self.eipAllocations) ? size(self.subnets.ids + self.subnets.names) == size(self.eipAllocations) : true",message="there must be as many eipAllocations as subnets"
// +kubebuilder:validation:XValidation:rule="has(self.subnets) && has(self.subnets.ids) && !has(self.subnets.names) && has(self.eipAllocations) ? size(self.subnets.ids) == size(self.eipAllocations) : true",message="there must be as many eipAllocations as subnets.ids"
// +kubebuilder:validation:XValidation:rule="has(self.subnets) && has(self.subnets.names) && !has(self.subnets.ids) && has(self.eipAllocations) ? size(self.subnets.names) == size(self.eipAllocations) : true",message="there must be as many eipAllocations as subnets.names"
type AWSNetworkLoadBalancerParameters struct {
	// subnets says where the load balancer is made. Unset means in every public or private subnet, as scope asks for.
	//
	// +optional
	Subnets *AWSSubnets `json:"subnets,omitempty"`

	// eipAllocations lists Elastic IP allocations, one per subnet. Unset means that AWS chooses addresses.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x == y))",message="eipAllocations cannot hold an allocation twice"
	EIPAllocations []EIPAllocation `json:"eipAllocations,omitempty"`

	// protocol says how the load balancer tells the address of a client.
	//
	// +optional
	// +kubebuilder:validation:Enum=TCP;PROXY
	Protocol string `json:"protocol,omitempty"`
}

// EIPAllocation is the ID of an Elastic IP allocation: eipalloc- and 17 hexadecimal digits.
//
// +kubebuilder:validation:MinLength=26
// +kubebuilder:validation:MaxLength=26
// +kubebuilder:validation:XValidation:rule="self.startsWith('eipalloc-')",message="an allocation must start with eipalloc-"
// +kubebuilder:validation:XValidation:rule="self.split('-', 2).size() == 2 && self.split('-', 2)[1].matches('[0-9a-fA-F]{17}$')",message="an allocation must end with 17 hexadecimal digits"
type EIPAllocation string

// AWSSubnets names subnets by their IDs, their names, or both.
//
// +kubebuilder:validation:XValidation:rule="has(self.ids) && has(self.names) ? size(self.ids + self.names) <= 10 : true",message="there can be at most 10 subnets"
// +kubebuilder:validation:XValidation:rule="(has(self.ids) && self.ids.size() > 0) || (has(self.names) && self.names.size() > 0)",message="one of ids and names is required"
type AWSSubnets struct {
	// ids lists subnets by their IDs.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x == y))",message="ids cannot hold a subnet twice"
	IDs []AWSSubnetID `json:"ids,omitempty"`

	// names lists subnets by their names, which are the values of the tag Name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x == y))",message="names cannot hold a subnet twice"
	Names []AWSSubnetName `json:"names,omitempty"`
}

// AWSSubnetID is the ID of a subnet.
//
// +kubebuilder:validation:MinLength=24
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:Pattern=`^subnet-[0-9A-Za-z]+$`
type AWSSubnetID string

// AWSSubnetName is the name of a subnet.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="!self.contains(',')",message="a subnet name cannot hold a comma"
// +kubebuilder:validation:XValidation:rule="!self.startsWith('subnet-')",message="a subnet name cannot start with subnet-; use ids"
type AWSSubnetName string

// GCPClientAccess says from which regions clients reach an internal load balancer.
//
// +kubebuilder:validation:Enum=Global;Local
type GCPClientAccess string

// GCPLoadBalancerParameters describes load balancers of GCP.
type GCPLoadBalancerParameters struct {
	// clientAccess says from which regions clients reach an internal load balancer. Unset means Local.
	//
	// +optional
	ClientAccess GCPClientAccess `json:"clientAccess,omitempty"`
}

// IBMLoadBalancerParameters describes load balancers of IBM Cloud.
type IBMLoadBalancerParameters struct {
	// protocol says how the load balancer tells the address of a client.
	//
	// +optional
	Protocol ProxyProtocol `json:"protocol,omitempty"`
}

// OpenStackLoadBalancerParameters describes load balancers of OpenStack.
type OpenStackLoadBalancerParameters struct {
	// floatingIP is the address that the load balancer gets. Unset means that one is chosen.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches('^((25[0-5]|(2[0-4]|1\\d|[1-9])?\\d)[.]?\\b){4}$') || (self.matches('^[\\da-fA-F:]+$') && !self.matches('[^:]{5}|:::|::.+::|^:[^:]|[^:]:$|(:\\w+){8}') && self.contains('::') != self.matches('(\\w+:+){7}\\w'))`,message="floatingIP must be an IPv4 or IPv6 address"
	FloatingIP string `json:"floatingIP,omitempty"`
}
