package netpolicy

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Names of the policies.
const (
	OpenShiftIngress        = "openshift-ingress"
	SameNamespace           = "same-namespace"
	KAS                     = "kas"
	OpenShiftMonitoring     = "openshift-monitoring"
	NodePortOAuth           = "nodeport-oauth"
	LoadBalancerOAuth       = "loadbalancer-oauth"
	NodePortIgnition        = "nodeport-ignition"
	NodePortIgnitionProxy   = "nodeport-ignition-proxy"
	NodePortKonnectivity    = "nodeport-konnectivity"
	NodePortKonnectivityKAS = "nodeport-konnectivity-kas"
)

// policyGroupLabel on namespaces says what the management cluster uses them for.
const policyGroupLabel = "network.openshift.io/policy-group"

// Ports that pods of the control plane listen on.
const (
	kasPort           = 6443
	oauthPort         = 6443
	ignitionPort      = 9090
	ignitionProxyPort = 8443
	konnectivityPort  = 8091
)

// Input is what the policies depend on.
type Input struct {
	Namespace string
	Services  []hyperv1.ServicePublishingStrategyMapping
	// APIPort is spec.networking.apiServer.port, or 0.
	APIPort int32
	// HasOAuth and HasIgnition tell whether the release has these servers at all.
	HasOAuth, HasIgnition bool
	// RoutesOnOwnRouter: the Routes are labelled for a router of the control plane's own, so the management cluster's ingress stays out.
	RoutesOnOwnRouter bool
}

// Plan is what to do in the namespace.
type Plan struct {
	Apply  []*networkingv1.NetworkPolicy
	Delete []string // names that must not exist
}

// For renders the policies of a control plane. What is not wanted is listed for deletion, so that a policy does not outlive its reason.
func For(in Input) Plan {
	plan := Plan{}
	for _, rule := range []struct {
		name   string
		wanted bool
		spec   networkingv1.NetworkPolicySpec
	}{
		{OpenShiftIngress, !in.RoutesOnOwnRouter, ingress(all(), fromGroup("ingress"))},
		{SameNamespace, true, ingress(all(), networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}})},
		{KAS, true, ingress(app("kube-apiserver"), onPorts(kasPort, in.APIPort))},
		{OpenShiftMonitoring, true, ingress(all(), fromGroup("monitoring"))},
		{NodePortOAuth, in.HasOAuth && in.publishes(hyperv1.OAuthServer, hyperv1.NodePort), ingress(app("oauth-openshift"), onPorts(oauthPort))},
		{LoadBalancerOAuth, in.HasOAuth && in.publishes(hyperv1.OAuthServer, hyperv1.LoadBalancer), ingress(app("oauth-openshift"), onPorts(oauthPort))},
		{NodePortIgnition, in.HasIgnition && in.publishes(hyperv1.Ignition, hyperv1.NodePort), ingress(app("ignition-server"), onPorts(ignitionPort))},
		{NodePortIgnitionProxy, in.HasIgnition && in.publishes(hyperv1.Ignition, hyperv1.NodePort), ingress(app("ignition-server-proxy"), onPorts(ignitionProxyPort))},
		{NodePortKonnectivity, in.publishes(hyperv1.Konnectivity, hyperv1.NodePort), ingress(app("konnectivity-server"), onPorts(konnectivityPort))},
		{NodePortKonnectivityKAS, in.publishes(hyperv1.Konnectivity, hyperv1.NodePort), ingress(app("kube-apiserver"), onPorts(konnectivityPort))},
	} {
		if !rule.wanted {
			plan.Delete = append(plan.Delete, rule.name)
			continue
		}
		plan.Apply = append(plan.Apply, &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: rule.name},
			Spec:       rule.spec,
		})
	}
	return plan
}

func (in Input) publishes(service hyperv1.ServiceType, by hyperv1.PublishingStrategyType) bool {
	for _, s := range in.Services {
		if s.Service == service && s.ServicePublishingStrategy.Type == by {
			return true
		}
	}
	return false
}

func all() metav1.LabelSelector { return metav1.LabelSelector{} }

func app(name string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func ingress(pods metav1.LabelSelector, rules ...networkingv1.NetworkPolicyIngressRule) networkingv1.NetworkPolicySpec {
	return networkingv1.NetworkPolicySpec{PodSelector: pods, Ingress: rules, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}
}

func fromGroup(group string) networkingv1.NetworkPolicyIngressRule {
	return networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{policyGroupLabel: group}},
	}}}
}

// onPorts allows TCP on the ports from anywhere; 0 and repetitions are left out.
func onPorts(ports ...int32) networkingv1.NetworkPolicyIngressRule {
	rule := networkingv1.NetworkPolicyIngressRule{}
	seen := map[int32]bool{0: true}
	for _, port := range ports {
		if !seen[port] {
			seen[port] = true
			rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(port))})
		}
	}
	return rule
}
