package v1beta1

import (
	operatorv1 "hcp.internal/api/operator/v1"
)

// OperatorConfiguration configures OpenShift's operators of the hosted cluster. It has no effect on Kubernetes releases.
type OperatorConfiguration struct {
	// clusterNetworkOperator configures the operator that installs the pod network.
	//
	// +optional
	ClusterNetworkOperator *ClusterNetworkOperatorSpec `json:"clusterNetworkOperator,omitempty"`

	// ingressOperator configures the operator that runs ingress controllers.
	//
	// +optional
	IngressOperator *IngressOperatorSpec `json:"ingressOperator,omitempty"`

	// clusterVersionOperator configures the operator that rolls out the release (TechPreview).
	//
	// +optional
	ClusterVersionOperator *ClusterVersionOperatorSpec `json:"clusterVersionOperator,omitempty"`
}

// ClusterVersionOperatorSpec configures the operator that rolls out the release.
type ClusterVersionOperatorSpec struct {
	// operatorLogLevel says how much it logs.
	//
	// +optional
	// +kubebuilder:default:="Normal"
	// +kubebuilder:validation:Enum="";Normal;Debug;Trace;TraceAll
	OperatorLogLevel string `json:"operatorLogLevel,omitempty"`
}

// ClusterNetworkOperatorSpec configures the operator that installs the pod network.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ovnKubernetesConfig) || has(self.ovnKubernetesConfig)",message="ovnKubernetesConfig cannot be removed once set"
type ClusterNetworkOperatorSpec struct {
	// disableMultiNetwork omits Multus. It may be set only when networking.networkType is Other, and cannot change.
	//
	// +optional
	// +kubebuilder:default:=false
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="disableMultiNetwork is immutable"
	DisableMultiNetwork *bool `json:"disableMultiNetwork,omitempty"`

	// ovnKubernetesConfig configures the network OVNKubernetes. It cannot be removed once set.
	//
	// +optional
	OVNKubernetesConfig *OVNKubernetesConfig `json:"ovnKubernetesConfig,omitempty"`
}

// OVNKubernetesConfig configures the network OVNKubernetes.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.ipv4) || !has(self.ipv4.internalJoinSubnet) || !has(self.ipv4.internalTransitSwitchSubnet) || self.ipv4.internalJoinSubnet != self.ipv4.internalTransitSwitchSubnet",message="ipv4.internalJoinSubnet and ipv4.internalTransitSwitchSubnet must differ"
// +kubebuilder:validation:XValidation:rule="!has(self.ipv6) || !has(self.ipv6.internalJoinSubnet) || !has(self.ipv6.internalTransitSwitchSubnet) || self.ipv6.internalJoinSubnet != self.ipv6.internalTransitSwitchSubnet",message="ipv6.internalJoinSubnet and ipv6.internalTransitSwitchSubnet must differ"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.mtu) || has(self.mtu)",message="mtu cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ipv6) || has(self.ipv6)",message="ipv6 cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ipv6) || !has(oldSelf.ipv6.internalJoinSubnet) || (has(self.ipv6) && has(self.ipv6.internalJoinSubnet))",message="ipv6.internalJoinSubnet cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ipv6) || !has(oldSelf.ipv6.internalTransitSwitchSubnet) || (has(self.ipv6) && has(self.ipv6.internalTransitSwitchSubnet))",message="ipv6.internalTransitSwitchSubnet cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.v4InternalSubnet) || has(self.v4InternalSubnet)",message="v4InternalSubnet cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.v6InternalSubnet) || has(self.v6InternalSubnet)",message="v6InternalSubnet cannot be removed once set"
type OVNKubernetesConfig struct {
	// ipv4 gives the IPv4 networks for internal use.
	//
	// +optional
	IPv4 *OVNIPv4Config `json:"ipv4,omitempty"`

	// ipv6 gives the IPv6 networks for internal use.
	//
	// +optional
	IPv6 *OVNIPv6Config `json:"ipv6,omitempty"`

	// mtu is the MTU of the pod network in bytes. Unset means that it follows from that of nodes. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:Minimum=576
	// +kubebuilder:validation:Maximum=9216
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="mtu is immutable"
	MTU *int32 `json:"mtu,omitempty"`

	// v4InternalSubnet is the IPv4 network between switches and routers of older releases. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="v4InternalSubnet is immutable"
	// +kubebuilder:validation:XValidation:rule="self.matches('^((25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])[.]){3}(25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])/(3[0-2]|[12]?[0-9])$')",message="v4InternalSubnet must be an IPv4 network such as 100.64.0.0/16"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/]+/[0-9]{1,3}$') && int(self.split('/')[1]) <= 30",message="v4InternalSubnet must have a prefix length of at most 30"
	// +kubebuilder:validation:XValidation:rule="self.matches('^((25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])[.]){3}(25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])/(3[0-2]|[12]?[0-9])$') && int(self.split('.')[0]) > 0",message="v4InternalSubnet cannot start with 0"
	V4InternalSubnet string `json:"v4InternalSubnet,omitempty"`

	// v6InternalSubnet is the IPv6 network between switches and routers of older releases. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="v6InternalSubnet is immutable"
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:(:[0-9a-fA-F]{1,4}){1,6}|:((:[0-9a-fA-F]{1,4}){1,7}|:))/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$') && !self.matches('^[0:]*:[fF]{4}(:[0-9a-fA-F]{1,4}){2}/')",message="v6InternalSubnet must be an IPv6 network such as fd98::/48"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/]+/[0-9]{1,3}$') && int(self.split('/')[1]) <= 125",message="v6InternalSubnet must have a prefix length of at most 125"
	V6InternalSubnet string `json:"v6InternalSubnet,omitempty"`
}

// OVNIPv4Subnet is an IPv4 network in CIDR notation that leaves room for nodes.
//
// +kubebuilder:validation:MinLength=9
// +kubebuilder:validation:MaxLength=18
// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]{1,3}\\.){3}[0-9]{1,3}/([0-9]|[1-2][0-9]|3[0-2])$') && self.split('/')[0].split('.').all(oct, int(oct) >= 0 && int(oct) <= 255)`,message="must be an IPv4 network such as 100.64.0.0/16"
// +kubebuilder:validation:XValidation:rule="self.matches('^.*/[0-9]+$') && int(self.split('/')[1]) <= 30",message="must have a prefix length of at most 30"
// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9]{1,3}\\..*') && int(self.split('/')[0].split('.')[0]) > 0`,message="cannot start with 0"
type OVNIPv4Subnet string

// OVNIPv6Subnet is an IPv6 network in CIDR notation that leaves room for nodes.
//
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=48
// +kubebuilder:validation:XValidation:rule="self.matches('^(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:(:[0-9a-fA-F]{1,4}){1,6}|:((:[0-9a-fA-F]{1,4}){1,7}|:))/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$') && !self.matches('^[0:]*:[fF]{4}(:[0-9a-fA-F]{1,4}){2}/')",message="must be an IPv6 network such as fd97::/64"
// +kubebuilder:validation:XValidation:rule="self.matches('^[^/]+/[0-9]{1,3}$') && int(self.split('/')[1]) <= 125",message="must have a prefix length of at most 125"
type OVNIPv6Subnet string

// OVNIPv4Config gives the IPv4 networks for internal use. They may not overlap with any network that pods must reach.
//
// +kubebuilder:validation:MinProperties=1
type OVNIPv4Config struct {
	// internalTransitSwitchSubnet is the network between zones. Unset means 100.88.0.0/16.
	//
	// +optional
	InternalTransitSwitchSubnet OVNIPv4Subnet `json:"internalTransitSwitchSubnet,omitempty"`

	// internalJoinSubnet is the network between switches and routers. Unset means 100.64.0.0/16.
	//
	// +optional
	InternalJoinSubnet OVNIPv4Subnet `json:"internalJoinSubnet,omitempty"`
}

// OVNIPv6Config gives the IPv6 networks for internal use. They may not overlap with any network that pods must reach.
//
// +kubebuilder:validation:MinProperties=1
type OVNIPv6Config struct {
	// internalTransitSwitchSubnet is the network between zones. Unset means fd97::/64. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="internalTransitSwitchSubnet is immutable"
	InternalTransitSwitchSubnet OVNIPv6Subnet `json:"internalTransitSwitchSubnet,omitempty"`

	// internalJoinSubnet is the network between switches and routers. Unset means fd98::/64. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="internalJoinSubnet is immutable"
	InternalJoinSubnet OVNIPv6Subnet `json:"internalJoinSubnet,omitempty"`
}

// IngressOperatorSpec configures the operator that runs ingress controllers.
type IngressOperatorSpec struct {
	// endpointPublishingStrategy says how the default ingress controller is published. Unset means as the platform has it.
	//
	// +optional
	EndpointPublishingStrategy *operatorv1.EndpointPublishingStrategy `json:"endpointPublishingStrategy,omitempty"`
}
