package netpolicy

import (
	"slices"

	"hcp.internal/platform/internal/contract/names"
)

// Places that are no component. A flow has them in From or To.
const (
	// anywhere is the whole network. Pods are open to it for what is published, and call it where the address is the user's choice.
	anywhere = "anywhere"
	// world is anywhere without the management cluster: its API servers, its pods and the addresses that clouds tell secrets on.
	world = "world"
	// managementAPI is the API of the management cluster, wherever it listens.
	managementAPI = "management API"
)

// Components that nobody else names, by the value of their label hypershift.openshift.io/control-plane-component. names.Etcd stands for its
// shards, too.
const (
	etcdRecovery = "etcd-recovery"
	autoscaler   = "cluster-autoscaler"
	karpenter    = "karpenter"
)

// Ports that pods of the control plane listen on, TCP.
const (
	kasPort           = 6443
	oauthPort         = 6443
	ignitionPort      = 9090
	ignitionProxyPort = 8443
	konnectivityPort  = 8091
	routerPort        = 8443
	routerPlainPort   = 8080 // that of other versions
	etcdClientPort    = 2379
	etcdPeerPort      = 2380
)

// apiPort stands for the ports of the hosted API server: 6443, and the one of spec.networking.apiServer.port.
const apiPort = -1

// Flow is who may open connections to whom.
type Flow struct {
	From, To string
	// Ports of To, TCP; none: all. apiPort is replaced.
	Ports []int32
	Why   string
}

// Matrix is every flow of the components of a control plane. What is not in it is denied, but for
//
//   - DNS, for every pod;
//   - namespaces of the management cluster's routers and monitoring, which reach every pod, as published;
//   - the kubelet of the pod's own node, which NetworkPolicies don't concern;
//   - pods that are no components: packages deliver them, and machines of platform Local are such. See others.go.
//
// A test compares it with what the components' manifests mount, listen on and ask for.
var Matrix = []Flow{
	{anywhere, names.KubeAPIServer, []int32{apiPort}, "users, nodes and pods of the hosted cluster, packages; the API server authenticates every caller"},
	{anywhere, names.KubeAPIServer, []int32{konnectivityPort}, "tunnel agents on nodes, which authenticate with a certificate"},
	{anywhere, names.IgnitionServer, []int32{ignitionPort}, "booting machines, which authenticate with a token"},

	{names.KubeAPIServer, names.Etcd, []int32{etcdClientPort}, "storage"},
	{names.ControlPlaneOperator, names.Etcd, []int32{etcdClientPort}, "health, compaction and defragmentation"},
	{etcdRecovery, names.Etcd, []int32{etcdClientPort}, "replacing a failed member"},
	{names.Etcd, names.Etcd, []int32{etcdClientPort, etcdPeerPort}, "peers, and members that check whether they belong to a cluster"},

	{names.ControlPlaneOperator, names.KubeAPIServer, []int32{apiPort}, "health, and objects that components need before they start"},
	{names.ConfigOperator, names.KubeAPIServer, []int32{apiPort}, "objects of the hosted cluster"},
	{names.KubeControllerManager, names.KubeAPIServer, []int32{apiPort}, "objects of the hosted cluster"},
	{names.KubeScheduler, names.KubeAPIServer, []int32{apiPort}, "pods and nodes of the hosted cluster"},
	{autoscaler, names.KubeAPIServer, []int32{apiPort}, "pods and nodes of the hosted cluster"},
	{names.ClusterAPI, names.KubeAPIServer, []int32{apiPort}, "nodes of machines"},

	{names.ControlPlaneOperator, managementAPI, nil, "the control plane's objects"},
	{names.ConfigOperator, managementAPI, nil, "the HostedControlPlane, machines"},
	{names.PKIOperator, managementAPI, nil, "requests for certificates"},
	{names.IgnitionServer, managementAPI, nil, "tokens, and the configuration of machines"},
	{autoscaler, managementAPI, nil, "sizes of NodePools"},
	{names.ClusterAPI, managementAPI, nil, "machines"},
	{names.CAPIProvider, managementAPI, nil, "machines"},
	{etcdRecovery, managementAPI, nil, "pods and volumes of members"},

	// A registry may be anywhere, the management cluster included, at any port. Who names it, and which answers are passed on, the code that asks decides.
	{names.ControlPlaneOperator, anywhere, nil, "registries, for releases"},
	{names.IgnitionServer, anywhere, nil, "registries, for releases"},

	{names.KubeAPIServer, world, nil, "webhooks and API services with a URL, audit webhook, token issuers, nodes without a tunnel"},
	{names.Etcd, world, nil, "the snapshot from which a cluster is restored"},
}

// cloudMatrix is what the matrix has besides on platforms that have a cloud.
var cloudMatrix = []Flow{
	{names.CAPIProvider, names.KubeAPIServer, []int32{apiPort}, "tokens that the cloud accepts, on cloud platforms"},
	// Endpoints of a cloud may be anywhere: in its own network, or where the installation says.
	{names.CAPIProvider, anywhere, nil, "the cloud's API, on cloud platforms"},
}

// autoNodeMatrix is what the matrix has besides where Karpenter makes machines.
var autoNodeMatrix = []Flow{
	{karpenter, names.KubeAPIServer, []int32{apiPort}, "pods and nodes of the hosted cluster, if `spec.autoNode` is set"},
	{karpenter, managementAPI, nil, "machines, if `spec.autoNode` is set"},
}

// flows are those of a control plane.
func (in Input) flows() []Flow {
	list := Matrix
	if in.Cloud {
		list = slices.Concat(list, cloudMatrix)
	}
	if in.AutoNode {
		list = slices.Concat(list, autoNodeMatrix)
	}
	return list
}

// componentNames are all components of the matrix, in the order in which they come.
func componentNames() (names []string) {
	seen := map[string]bool{anywhere: true, world: true, managementAPI: true}
	for _, f := range Matrix {
		for _, name := range []string{f.From, f.To} {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}
