package netpolicy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// policyGroupLabel on namespaces says what the management cluster uses them for.
const policyGroupLabel = "network.openshift.io/policy-group"

// SharedIngressNamespace is where the shared endpoint of hosted clusters runs, if it is installed. Its label tells it from a namespace of that name that somebody
// makes who may not label namespaces.
const (
	SharedIngressNamespace = "hypershift-sharedingress"
	SharedIngressLabel     = "hypershift.openshift.io/component"
	SharedIngressComponent = "shared-ingress"
)

var sharedIngress = map[string]string{corev1.LabelMetadataName: SharedIngressNamespace, SharedIngressLabel: SharedIngressComponent}

// Servers of OpenShift payloads that shared endpoints lead to, by their label app.
const oauthServer, ignitionProxy = "oauth-openshift", "ignition-server-proxy"

// components renders the matrix: one policy for each component, with its flows of both directions.
func (in Input) components() (rules []rule) {
	for _, name := range append(componentNames(), karpenter) {
		spec := networkingv1.NetworkPolicySpec{
			PodSelector: in.component(name),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		}
		for _, f := range in.flows() {
			if f.To == name {
				spec.Ingress = append(spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: in.peers(f.From), Ports: in.ports(f)})
			}
			if f.From == name {
				spec.Egress = append(spec.Egress, networkingv1.NetworkPolicyEgressRule{To: in.peers(f.To), Ports: in.ports(f)})
			}
		}
		if name == names.KubeAPIServer && in.UnmanagedEtcdPort != 0 {
			spec.Egress = append(spec.Egress, networkingv1.NetworkPolicyEgressRule{Ports: tcp(in.UnmanagedEtcdPort)})
		}
		rules = append(rules, rule{componentPrefix + name, name != karpenter || in.AutoNode, spec})
	}
	return rules
}

// peers of a flow; none means everybody.
func (in Input) peers(name string) []networkingv1.NetworkPolicyPeer {
	switch name {
	case anywhere, managementAPI:
		return nil // some networks know the API server's address under no range, so that its ports alone can tell it
	case world:
		return in.Management.world()
	}
	return []networkingv1.NetworkPolicyPeer{{PodSelector: ptr.To(in.component(name))}}
}

func (in Input) ports(f Flow) []networkingv1.NetworkPolicyPort {
	if f.To == managementAPI {
		return tcp(in.Management.apiPorts()...)
	}
	if len(f.Ports) == 0 {
		return []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP)}}
	}
	var ports []int32
	for _, port := range f.Ports {
		if port == apiPort {
			ports = append(ports, in.apiPorts()...)
			continue
		}
		ports = append(ports, port)
	}
	return tcp(ports...)
}

func (in Input) apiPorts() []int32 { return []int32{kasPort, in.APIPort} }

// component selects the pods of a component.
func (in Input) component(name string) metav1.LabelSelector {
	if name == names.Etcd && len(in.EtcdShards) > 0 {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: hyperv1.ControlPlaneComponentLabel, Operator: metav1.LabelSelectorOpIn, Values: append([]string{names.Etcd}, slices.Sorted(slices.Values(in.EtcdShards))...),
		}}}
	}
	return metav1.LabelSelector{MatchLabels: map[string]string{hyperv1.ControlPlaneComponentLabel: name}}
}

func all() metav1.LabelSelector { return metav1.LabelSelector{} }

func app(name string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func apps(list ...string) metav1.LabelSelector {
	return labelled(metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: list})
}

func ingress(pods metav1.LabelSelector, rules ...networkingv1.NetworkPolicyIngressRule) networkingv1.NetworkPolicySpec {
	return networkingv1.NetworkPolicySpec{PodSelector: pods, Ingress: rules, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}
}

func egress(pods metav1.LabelSelector, rules ...networkingv1.NetworkPolicyEgressRule) networkingv1.NetworkPolicySpec {
	return networkingv1.NetworkPolicySpec{PodSelector: pods, Egress: rules, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}}
}

func fromGroup(group string) networkingv1.NetworkPolicyIngressRule {
	return networkingv1.NetworkPolicyIngressRule{From: namespaces(map[string]string{policyGroupLabel: group})}
}

// namespaces are all pods of those with these labels.
func namespaces(labels map[string]string) []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: labels}}}
}

// gateway is where the proxies of a shared Gateway run; nothing without one.
func (in Input) gateway() []networkingv1.NetworkPolicyPeer {
	if in.Management.Gateway == "" {
		return nil
	}
	return namespaces(map[string]string{corev1.LabelMetadataName: in.Management.Gateway})
}

// fromMonitoring allows those who ask for metrics.
func (in Input) fromMonitoring() networkingv1.NetworkPolicyIngressRule {
	rule := fromGroup("monitoring")
	if ns := in.Management.Prometheus; ns != "" {
		rule.From = append(rule.From, namespaces(map[string]string{corev1.LabelMetadataName: ns})...)
	}
	return rule
}

// onPorts allows TCP on the ports from anywhere.
func onPorts(ports ...int32) networkingv1.NetworkPolicyIngressRule {
	return networkingv1.NetworkPolicyIngressRule{Ports: tcp(ports...)}
}

// tcp leaves out 0 and repetitions.
func tcp(ports ...int32) (out []networkingv1.NetworkPolicyPort) {
	return on(corev1.ProtocolTCP, ports...)
}

func on(protocol corev1.Protocol, ports ...int32) (out []networkingv1.NetworkPolicyPort) {
	seen := map[int32]bool{0: true}
	for _, port := range ports {
		if !seen[port] {
			seen[port] = true
			out = append(out, networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(port))})
		}
	}
	return out
}
