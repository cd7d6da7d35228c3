package v1beta1

// ServiceType names an endpoint of the control plane that somebody outside it must reach.
//
// +kubebuilder:validation:Enum=APIServer;OAuthServer;OIDC;Konnectivity;Ignition;OVNSbDb
type ServiceType string

const (
	// APIServer is kube-apiserver.
	APIServer ServiceType = "APIServer"
	// OAuthServer is OpenShift's OAuth server.
	OAuthServer ServiceType = "OAuthServer"
	// OIDC is accepted for old manifests and ignored.
	OIDC ServiceType = "OIDC"
	// Konnectivity is the tunnel by which the API server reaches nodes and pods.
	Konnectivity ServiceType = "Konnectivity"
	// Ignition hands new machines their configuration.
	Ignition ServiceType = "Ignition"
	// OVNSbDb is accepted for old manifests and ignored.
	OVNSbDb ServiceType = "OVNSbDb"
)

// PublishingStrategyType names a way to publish an endpoint.
//
// +kubebuilder:validation:Enum=LoadBalancer;NodePort;Route;None;S3
type PublishingStrategyType string

const (
	// LoadBalancer publishes by a Service of type LoadBalancer.
	LoadBalancer PublishingStrategyType = "LoadBalancer"
	// NodePort publishes by a Service of type NodePort and an address of the user's.
	NodePort PublishingStrategyType = "NodePort"
	// Route publishes by an OpenShift Route.
	Route PublishingStrategyType = "Route"
	// S3 is accepted for the service OIDC only and ignored.
	S3 PublishingStrategyType = "S3"
	// None does not publish.
	None PublishingStrategyType = "None"
)

// ServicePublishingStrategyMapping says how one endpoint is published.
type ServicePublishingStrategyMapping struct {
	// service names the endpoint.
	//
	// +required
	Service ServiceType `json:"service"`

	// servicePublishingStrategy says how it is published.
	//
	// +required
	ServicePublishingStrategy ServicePublishingStrategy `json:"servicePublishingStrategy"`
}

// ServicePublishingStrategy is a union over type.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'NodePort' ? has(self.nodePort) : !has(self.nodePort)",message="nodePort is required when type is NodePort, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="self.type == 'Route' ? !has(self.nodePort) && !has(self.loadBalancer) : !has(self.route)",message="route is allowed only when type is Route, and then it is the only one"
// +kubebuilder:validation:XValidation:rule="self.type == 'LoadBalancer' ? !has(self.nodePort) && !has(self.route) : !has(self.loadBalancer)",message="loadBalancer is allowed only when type is LoadBalancer, and then it is the only one"
// +kubebuilder:validation:XValidation:rule="self.type == 'None' ? !has(self.nodePort) && !has(self.route) && !has(self.loadBalancer) : true",message="nodePort, route and loadBalancer are forbidden when type is None"
// +kubebuilder:validation:XValidation:rule="self.type == 'S3' ? !has(self.nodePort) && !has(self.route) && !has(self.loadBalancer) : true",message="nodePort, route and loadBalancer are forbidden when type is S3"
type ServicePublishingStrategy struct {
	// type names the way to publish.
	//
	// +required
	Type PublishingStrategyType `json:"type"`

	// nodePort gives the address, and maybe the port, when type is NodePort.
	//
	// +optional
	NodePort *NodePortPublishingStrategy `json:"nodePort,omitempty"`

	// loadBalancer gives the host name when type is LoadBalancer.
	//
	// +optional
	LoadBalancer *LoadBalancerPublishingStrategy `json:"loadBalancer,omitempty"`

	// route gives the host name when type is Route.
	//
	// +optional
	Route *RoutePublishingStrategy `json:"route,omitempty"`
}

// NodePortPublishingStrategy says where a NodePort is reached.
type NodePortPublishingStrategy struct {
	// address is a host name or an IP address by which nodes of the management cluster are reached.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self == 'localhost' || (self.matches('^(((25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])[.]){3}(25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])|(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:(:[0-9a-fA-F]{1,4}){1,6}|:((:[0-9a-fA-F]{1,4}){1,7}|:)))$') && !self.matches('^[0:]*:[fF]{4}(:[0-9a-fA-F]{1,4}){2}$')) || self.matches('^(?:[a-zA-Z0-9-]+\\.)+[a-zA-Z]{2,}$')`,message="address must be a fully qualified host name, localhost, an IPv4 address or an IPv6 address"
	Address string `json:"address"`

	// port asks for a node port. Unset, or 0, means that one is chosen.
	//
	// +optional
	Port int32 `json:"port,omitempty"`
}

// PublishedHostname is a fully qualified host name.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule=`self.matches('^(?:[a-zA-Z0-9-]+\\.)+[a-zA-Z]{2,}$')`,message="hostname must be a fully qualified name such as api.example.com"
type PublishedHostname string

// LoadBalancerPublishingStrategy names what a load balancer is reached by.
type LoadBalancerPublishingStrategy struct {
	// hostname is the DNS name that will point at the load balancer. Unset means the address that the load balancer gets.
	//
	// +optional
	Hostname PublishedHostname `json:"hostname,omitempty"`
}

// RoutePublishingStrategy names the host of a Route.
type RoutePublishingStrategy struct {
	// hostname is the host of the Route. Unset means that the ingress of the management cluster chooses.
	//
	// +optional
	Hostname PublishedHostname `json:"hostname,omitempty"`
}
