package v1

// EndpointPublishingStrategyType names a way to publish an ingress controller.
//
// +kubebuilder:validation:Enum=LoadBalancerService;HostNetwork;Private;NodePortService
type EndpointPublishingStrategyType string

const (
	// LoadBalancerServiceStrategyType publishes by a Service of type LoadBalancer.
	LoadBalancerServiceStrategyType EndpointPublishingStrategyType = "LoadBalancerService"
	// HostNetworkStrategyType publishes on ports of nodes.
	HostNetworkStrategyType EndpointPublishingStrategyType = "HostNetwork"
	// PrivateStrategyType does not publish.
	PrivateStrategyType EndpointPublishingStrategyType = "Private"
	// NodePortServiceStrategyType publishes by a Service of type NodePort.
	NodePortServiceStrategyType EndpointPublishingStrategyType = "NodePortService"
)

// EndpointPublishingStrategy is a union over type. Members that newer releases add are kept.
//
// +union
// +kubebuilder:pruning:PreserveUnknownFields
type EndpointPublishingStrategy struct {
	// type names the way.
	//
	// +unionDiscriminator
	// +required
	Type EndpointPublishingStrategyType `json:"type"`

	// loadBalancer configures type LoadBalancerService.
	//
	// +optional
	LoadBalancer *LoadBalancerStrategy `json:"loadBalancer,omitempty"`

	// hostNetwork configures type HostNetwork.
	//
	// +optional
	HostNetwork *HostNetworkStrategy `json:"hostNetwork,omitempty"`

	// private configures type Private.
	//
	// +optional
	Private *PrivateStrategy `json:"private,omitempty"`

	// nodePort configures type NodePortService.
	//
	// +optional
	NodePort *NodePortStrategy `json:"nodePort,omitempty"`
}

// ProxyProtocol says how a load balancer in front tells the address of a client.
//
// +kubebuilder:validation:Enum="";TCP;PROXY
type ProxyProtocol string

const (
	// DefaultProtocol is TCP.
	DefaultProtocol ProxyProtocol = ""
	// TCPProtocol tells nothing.
	TCPProtocol ProxyProtocol = "TCP"
	// ProxyProtocolPROXY tells it by the PROXY protocol.
	ProxyProtocolPROXY ProxyProtocol = "PROXY"
)

// PrivateStrategy configures an ingress controller that is not published.
type PrivateStrategy struct {
	// protocol says how a load balancer in front tells the address of a client.
	//
	// +optional
	Protocol ProxyProtocol `json:"protocol,omitempty"`
}

// NodePortStrategy configures an ingress controller behind node ports.
type NodePortStrategy struct {
	// protocol says how a load balancer in front tells the address of a client.
	//
	// +optional
	Protocol ProxyProtocol `json:"protocol,omitempty"`
}

// HostNetworkStrategy configures an ingress controller on ports of nodes.
type HostNetworkStrategy struct {
	// protocol says how a load balancer in front tells the address of a client.
	//
	// +optional
	Protocol ProxyProtocol `json:"protocol,omitempty"`

	// httpPort is the port for HTTP.
	//
	// +optional
	// +kubebuilder:default:=80
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	HTTPPort int32 `json:"httpPort,omitempty"`

	// httpsPort is the port for HTTPS.
	//
	// +optional
	// +kubebuilder:default:=443
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	HTTPSPort int32 `json:"httpsPort,omitempty"`

	// statsPort is the port for statistics and health checks.
	//
	// +optional
	// +kubebuilder:default:=1936
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	StatsPort int32 `json:"statsPort,omitempty"`
}

// LoadBalancerScope says who reaches a load balancer.
//
// +kubebuilder:validation:Enum=Internal;External
type LoadBalancerScope string

const (
	// InternalLoadBalancer is reached from inside the cloud's network.
	InternalLoadBalancer LoadBalancerScope = "Internal"
	// ExternalLoadBalancer is reached from the internet.
	ExternalLoadBalancer LoadBalancerScope = "External"
)

// CIDR is an IPv4 or IPv6 network in CIDR notation.
//
// +kubebuilder:validation:Pattern=`(^(([0-9]|[0-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])\.){3}([0-9]|[0-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])/([0-9]|[12][0-9]|3[0-2])$)|(^s*((([0-9A-Fa-f]{1,4}:){7}([0-9A-Fa-f]{1,4}|:))|(([0-9A-Fa-f]{1,4}:){6}(:[0-9A-Fa-f]{1,4}|((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3})|:))|(([0-9A-Fa-f]{1,4}:){5}(((:[0-9A-Fa-f]{1,4}){1,2})|:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3})|:))|(([0-9A-Fa-f]{1,4}:){4}(((:[0-9A-Fa-f]{1,4}){1,3})|((:[0-9A-Fa-f]{1,4})?:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3}))|:))|(([0-9A-Fa-f]{1,4}:){3}(((:[0-9A-Fa-f]{1,4}){1,4})|((:[0-9A-Fa-f]{1,4}){0,2}:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3}))|:))|(([0-9A-Fa-f]{1,4}:){2}(((:[0-9A-Fa-f]{1,4}){1,5})|((:[0-9A-Fa-f]{1,4}){0,3}:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3}))|:))|(([0-9A-Fa-f]{1,4}:){1}(((:[0-9A-Fa-f]{1,4}){1,6})|((:[0-9A-Fa-f]{1,4}){0,4}:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3}))|:))|(:(((:[0-9A-Fa-f]{1,4}){1,7})|((:[0-9A-Fa-f]{1,4}){0,5}:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3}))|:)))(%.+)?s*(\/(12[0-8]|1[0-1][0-9]|[1-9][0-9]|[0-9]))$)`
type CIDR string

// LoadBalancerDNSManagementPolicy says who manages the DNS records of a load balancer.
//
// +kubebuilder:validation:Enum=Managed;Unmanaged
type LoadBalancerDNSManagementPolicy string

const (
	// ManagedLoadBalancerDNS leaves them to OpenShift's ingress operator.
	ManagedLoadBalancerDNS LoadBalancerDNSManagementPolicy = "Managed"
	// UnmanagedLoadBalancerDNS leaves them to the user.
	UnmanagedLoadBalancerDNS LoadBalancerDNSManagementPolicy = "Unmanaged"
)

// LoadBalancerStrategy configures an ingress controller behind a load balancer.
//
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.scope != 'Internal' || !has(self.providerParameters) || !has(self.providerParameters.aws) || !has(self.providerParameters.aws.networkLoadBalancer) || !has(self.providerParameters.aws.networkLoadBalancer.eipAllocations)",message="eipAllocations is forbidden when scope is Internal"
// +kubebuilder:validation:XValidation:rule=`!has(self.scope) || self.scope != 'Internal' || !has(self.providerParameters) || !has(self.providerParameters.openstack) || !has(self.providerParameters.openstack.floatingIP) || self.providerParameters.openstack.floatingIP == ""`,message="floatingIP is forbidden when scope is Internal"
type LoadBalancerStrategy struct {
	// scope says who reaches the load balancer.
	//
	// +required
	Scope LoadBalancerScope `json:"scope"`

	// allowedSourceRanges lists networks that may reach it. Empty means any.
	//
	// +optional
	// +nullable
	// +listType=atomic
	AllowedSourceRanges []CIDR `json:"allowedSourceRanges,omitempty"`

	// providerParameters says what only some clouds know.
	//
	// +optional
	ProviderParameters *ProviderLoadBalancerParameters `json:"providerParameters,omitempty"`

	// dnsManagementPolicy says who manages the DNS records.
	//
	// +required
	// +kubebuilder:default:="Managed"
	DNSManagementPolicy LoadBalancerDNSManagementPolicy `json:"dnsManagementPolicy,omitempty"`
}
