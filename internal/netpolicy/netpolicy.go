package netpolicy

import (
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// Names of the policies.
const (
	DefaultDeny             = "default-deny"
	DNS                     = "dns"
	OpenShiftIngress        = "openshift-ingress"
	SameNamespace           = "same-namespace"
	KAS                     = "kas"
	ManagementKAS           = "management-kas"
	ManagementKASAccess     = "management-kas-access"
	SharedIngress           = "sharedingress"
	SharedGateway           = "sharedgateway"
	OpenShiftMonitoring     = "openshift-monitoring"
	Machines                = "machines"
	VirtLauncher            = "virt-launcher"
	PrivateRouter           = "private-router"
	NodePortOAuth           = "nodeport-oauth"
	LoadBalancerOAuth       = "loadbalancer-oauth"
	NodePortIgnition        = "nodeport-ignition"
	NodePortIgnitionProxy   = "nodeport-ignition-proxy"
	NodePortKonnectivity    = "nodeport-konnectivity"
	NodePortKonnectivityKAS = "nodeport-konnectivity-kas"

	// componentPrefix comes before the name of a component.
	componentPrefix = "component-"
)

// Input is what the policies depend on.
type Input struct {
	Namespace string
	Services  []hyperv1.ServicePublishingStrategyMapping
	// APIPort is spec.networking.apiServer.port, or 0.
	APIPort int32
	// HasOAuth and HasIgnition tell whether the release has these servers at all.
	HasOAuth, HasIgnition bool
	// Payload is true for OpenShift payloads. Their components are others than those of the matrix, and reach each other as freely as published.
	Payload bool
	// HasRouter is true where the control plane has a router of its own.
	HasRouter bool
	// EtcdShards are the components that are etcd besides the one of that name.
	EtcdShards []string
	// UnmanagedEtcdPort is where somebody else's etcd listens, or 0.
	UnmanagedEtcdPort int32
	// PodMachines: machines are pods of the namespace.
	PodMachines bool
	// VirtualMachines is the infrastructure's ID of a cluster whose machines are virtual machines of KubeVirt in pods of the namespace; empty: they are not.
	VirtualMachines string
	// Cloud: machines are made by calling a cloud.
	Cloud bool
	// AutoNode: Karpenter makes machines.
	AutoNode bool
	// Registries are those that are named by their address and not by a name, which may be one of the management cluster.
	Registries []netip.AddrPort
	Management Management
}

// Plan is what to do in the namespace.
type Plan struct {
	Apply  []*networkingv1.NetworkPolicy
	Delete []string // names that must not exist
}

// For renders the policies of a control plane. What is not wanted is listed for deletion, so that a policy does not outlive its reason. Permissions come
// before the denial of all else, so that a control plane that runs already is never cut off on the way.
func For(in Input) Plan {
	plan := Plan{}
	for _, rule := range append(append(in.components(), in.others()...), in.published()...) {
		if !rule.wanted {
			plan.Delete = append(plan.Delete, rule.name)
			continue
		}
		plan.Apply = append(plan.Apply, &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: rule.name},
			Spec:       rule.spec,
		})
	}
	plan.Apply = append(plan.Apply, &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: DefaultDeny},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}},
	})
	return plan
}

// rule is a policy, wanted or not.
type rule struct {
	name   string
	wanted bool
	spec   networkingv1.NetworkPolicySpec
}

// published are the policies that installations of other versions have, too.
func (in Input) published() []rule {
	return []rule{
		{OpenShiftIngress, true, ingress(all(), fromGroup("ingress"))},
		// Whatever shared endpoints lead to in Kubernetes releases, the matrix opens to everybody.
		{SharedIngress, in.Payload, ingress(all(), networkingv1.NetworkPolicyIngressRule{From: namespaces(sharedIngress)})},
		{SharedGateway, in.Payload && in.Management.Gateway != "", ingress(apps(oauthServer, ignitionProxy),
			networkingv1.NetworkPolicyIngressRule{From: in.gateway(), Ports: tcp(oauthPort, ignitionProxyPort)})},
		{OpenShiftMonitoring, true, ingress(all(), in.fromMonitoring())},
		{KAS, true, ingress(app(names.KubeAPIServer), onPorts(in.apiPorts()...))},
		{NodePortOAuth, in.HasOAuth && in.publishes(hyperv1.OAuthServer, hyperv1.NodePort), ingress(app(oauthServer), onPorts(oauthPort))},
		{LoadBalancerOAuth, in.HasOAuth && in.publishes(hyperv1.OAuthServer, hyperv1.LoadBalancer), ingress(app(oauthServer), onPorts(oauthPort))},
		{PrivateRouter, in.HasRouter, ingress(app("private-router"), onPorts(routerPlainPort, routerPort))},
		{NodePortIgnition, in.HasIgnition && in.publishes(hyperv1.Ignition, hyperv1.NodePort), ingress(app(names.IgnitionServer), onPorts(ignitionPort))},
		{NodePortIgnitionProxy, in.HasIgnition && in.publishes(hyperv1.Ignition, hyperv1.NodePort), ingress(app(ignitionProxy), onPorts(ignitionProxyPort))},
		{NodePortKonnectivity, in.publishes(hyperv1.Konnectivity, hyperv1.NodePort), ingress(app("konnectivity-server"), onPorts(konnectivityPort))},
		{NodePortKonnectivityKAS, in.publishes(hyperv1.Konnectivity, hyperv1.NodePort), ingress(app(names.KubeAPIServer), onPorts(konnectivityPort))},
	}
}

func (in Input) publishes(service hyperv1.ServiceType, by hyperv1.PublishingStrategyType) bool {
	for _, s := range in.Services {
		if s.Service == service && s.ServicePublishingStrategy.Type == by {
			return true
		}
	}
	return false
}
