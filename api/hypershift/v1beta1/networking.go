package v1beta1

// NetworkType names the pod network of the hosted cluster.
//
// +kubebuilder:validation:Enum=OpenShiftSDN;Calico;OVNKubernetes;Other
type NetworkType string

const (
	// OpenShiftSDN is the old OpenShift network.
	OpenShiftSDN NetworkType = "OpenShiftSDN"
	// Calico is installed by the user.
	Calico NetworkType = "Calico"
	// OVNKubernetes is the default of OpenShift releases.
	OVNKubernetes NetworkType = "OVNKubernetes"
	// Other means that the user brings the network; nothing is installed.
	Other NetworkType = "Other"
)

// AllocateNodeCIDRsMode says whether kube-controller-manager hands a pod CIDR to every node.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type AllocateNodeCIDRsMode string

const (
	// AllocateNodeCIDRsEnabled makes kube-controller-manager set spec.podCIDR of nodes.
	AllocateNodeCIDRsEnabled AllocateNodeCIDRsMode = "Enabled"
	// AllocateNodeCIDRsDisabled leaves spec.podCIDR of nodes to the pod network.
	AllocateNodeCIDRsDisabled AllocateNodeCIDRsMode = "Disabled"
)

// CIDRBlock is an IPv4 or IPv6 network in CIDR notation. The form is checked on admission; that the numbers make sense is
// checked by the operator, which reports it in the condition ValidConfiguration.
//
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule=`self.matches('^((\\d{1,3}\\.){3}\\d{1,3}/\\d{1,2})$') || self.matches('^([0-9a-fA-F]{0,4}:){2,7}([0-9a-fA-F]{0,4})?/[0-9]{1,3}$')`,message="a CIDR must look like 10.0.0.0/16 or fd00::/48"
type CIDRBlock string

// ClusterNetworking is the address plan of the hosted cluster.
//
// +kubebuilder:validation:XValidation:rule="(!has(self.machineNetwork) || self.machineNetwork.all(m, self.clusterNetwork.all(c, m.cidr != c.cidr) && self.serviceNetwork.all(s, m.cidr != s.cidr))) && self.clusterNetwork.all(c, self.serviceNetwork.all(s, c.cidr != s.cidr))",message="a CIDR may appear only once in machineNetwork, clusterNetwork and serviceNetwork"
// +kubebuilder:validation:XValidation:rule="!has(self.allocateNodeCIDRs) || self.allocateNodeCIDRs != 'Enabled' || self.networkType == 'Other'",message="allocateNodeCIDRs may be Enabled only when networkType is Other"
type ClusterNetworking struct {
	// machineNetwork lists the networks that the machines of the hosted cluster live in. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="machineNetwork is immutable"
	MachineNetwork []MachineNetworkEntry `json:"machineNetwork,omitempty"`

	// clusterNetwork lists the networks that pods of the hosted cluster get their addresses from: one, or one per
	// address family. It cannot change.
	//
	// +optional
	// +kubebuilder:default:={{cidr: "10.132.0.0/14"}}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterNetwork is immutable"
	ClusterNetwork []ClusterNetworkEntry `json:"clusterNetwork,omitempty"`

	// serviceNetwork lists the networks that Services of the hosted cluster get their addresses from: one, or one per
	// address family. It cannot change.
	//
	// +optional
	// +kubebuilder:default:={{cidr: "172.31.0.0/16"}}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="serviceNetwork is immutable"
	ServiceNetwork []ServiceNetworkEntry `json:"serviceNetwork,omitempty"`

	// networkType names the pod network. With Other, and always with Kubernetes releases, the user installs one.
	//
	// +optional
	// +kubebuilder:default:="OVNKubernetes"
	NetworkType NetworkType `json:"networkType,omitempty"`

	// apiServer says how nodes reach the API server and who may.
	//
	// +optional
	APIServer *APIServerNetworking `json:"apiServer,omitempty"`

	// allocateNodeCIDRs says whether kube-controller-manager hands a pod CIDR to every node. It may be Enabled only with
	// networkType Other and cannot change once set.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="allocateNodeCIDRs is immutable"
	AllocateNodeCIDRs *AllocateNodeCIDRsMode `json:"allocateNodeCIDRs,omitempty"`
}

// MachineNetworkEntry is one network of machines.
type MachineNetworkEntry struct {
	// cidr is the network.
	//
	// +required
	CIDR CIDRBlock `json:"cidr"`
}

// ClusterNetworkEntry is one network of pods.
type ClusterNetworkEntry struct {
	// cidr is the network.
	//
	// +required
	CIDR CIDRBlock `json:"cidr"`

	// hostPrefix is the prefix length of the part that each node gets. The pod network chooses when it is unset (23 for
	// IPv4 on OpenShift).
	//
	// +optional
	HostPrefix int32 `json:"hostPrefix,omitempty"`
}

// ServiceNetworkEntry is one network of Services.
type ServiceNetworkEntry struct {
	// cidr is the network.
	//
	// +required
	CIDR CIDRBlock `json:"cidr"`
}

// APIServerNetworking says how the API server is reached from nodes, and who may reach it at all.
type APIServerNetworking struct {
	// advertiseAddress is the address by which nodes reach the API server through their local proxy. Unset means
	// 172.20.0.1, or fd00::1 in an IPv6 cluster. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="advertiseAddress is immutable"
	AdvertiseAddress *string `json:"advertiseAddress,omitempty"`

	// port is where nodes, and the pods on them, reach the API server. Unset means 6443. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="port is immutable"
	Port *int32 `json:"port,omitempty"`

	// allowedCIDRBlocks lists the networks that may reach the API server from outside. Empty means everybody. It holds
	// where the load balancer or the router in front of the API server enforces it.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=500
	AllowedCIDRBlocks []CIDRBlock `json:"allowedCIDRBlocks,omitempty"`
}
