package netpolicy

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// dnsPorts are those that servers of DNS listen on behind their Service: the usual one, that of OpenShift, and that of servers without the right to the usual one.
var dnsPorts = []int32{53, 5353, 1053}

// ebsOperator is a pod that the published policy about the management API leaves out by its label name.
const ebsOperator = "aws-ebs-csi-driver-operator"

// others are the policies of pods that are no components of ours: those that packages bring, as freely as published, and machines of platform Local, which
// are as strange to the control plane as machines elsewhere.
func (in Input) others() []rule {
	return []rule{
		{DNS, true, egress(all(), namesAreResolved())},
		{SameNamespace, true, in.sameNamespace()},
		{ManagementKAS, true, egress(in.free(absent(hyperv1.NeedManagementKASAccessLabel),
			metav1.LabelSelectorRequirement{Key: "name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{ebsOperator}}),
			networkingv1.NetworkPolicyEgressRule{To: in.Management.world()})},
		{ManagementKASAccess, true, egress(in.free(present(hyperv1.NeedManagementKASAccessLabel)), networkingv1.NetworkPolicyEgressRule{})},
		{Machines, in.PodMachines, in.machines()},
		{VirtLauncher, in.VirtualMachines != "", in.virtualMachines()},
	}
}

// noStrangers leaves out the pods that are machines, where users of the hosted cluster are at home. They are as strange to the control plane as machines elsewhere.
func (in Input) noStrangers() []metav1.LabelSelectorRequirement {
	list := []metav1.LabelSelectorRequirement{absent(infrav1.MachineLabel)}
	if in.VirtualMachines != "" {
		list = append(list, metav1.LabelSelectorRequirement{Key: kubevirtLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{VirtLauncher}})
	}
	return list
}

// kubevirtLabel says which part of KubeVirt a pod is. On pods of virtual machines it is virt-launcher, and nobody else can set it: it is refused in spec.labels.
const kubevirtLabel = "kubevirt.io"

// free selects the pods that are as free as published: those that are no components of the matrix.
func (in Input) free(requirements ...metav1.LabelSelectorRequirement) metav1.LabelSelector {
	requirements = append(in.noStrangers(), requirements...)
	if in.Payload {
		return labelled(requirements...)
	}
	return labelled(append([]metav1.LabelSelectorRequirement{absent(hyperv1.ControlPlaneComponentLabel)}, requirements...)...)
}

// sameNamespace: pods of packages and the control plane reach each other, as far as the matrix lets them. Machines stay outside.
func (in Input) sameNamespace() networkingv1.NetworkPolicySpec {
	inside := []networkingv1.NetworkPolicyPeer{{PodSelector: ptr.To(labelled(in.noStrangers()...))}}
	return networkingv1.NetworkPolicySpec{
		PodSelector: in.free(),
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: inside}},
		Egress:      []networkingv1.NetworkPolicyEgressRule{{To: inside}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
	}
}

// machines reach each other, what their control plane publishes, and the world.
func (in Input) machines() networkingv1.NetworkPolicySpec {
	each := []networkingv1.NetworkPolicyPeer{{PodSelector: ptr.To(labelled(present(infrav1.MachineLabel)))}}
	spec := networkingv1.NetworkPolicySpec{
		PodSelector: labelled(present(infrav1.MachineLabel)),
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: each}},
		Egress:      append([]networkingv1.NetworkPolicyEgressRule{{To: each}}, in.whatMachinesReach()...),
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
	}
	for _, registry := range in.Registries {
		spec.Egress = append(spec.Egress, networkingv1.NetworkPolicyEgressRule{
			To: block(netip.PrefixFrom(registry.Addr(), registry.Addr().BitLen())), Ports: tcp(int32(registry.Port())),
		})
	}
	return spec
}

// virtualMachines are reached by everybody, as what runs on them decides, and reach each other, what their control plane publishes, routers of the management
// cluster and shared endpoints, and the world.
func (in Input) virtualMachines() networkingv1.NetworkPolicySpec {
	each := metav1.LabelSelector{MatchLabels: map[string]string{hyperv1.InfraIDLabel: in.VirtualMachines, kubevirtLabel: VirtLauncher}}
	var every []networkingv1.NetworkPolicyPort
	for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
		every = append(every, networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol)})
	}
	spec := networkingv1.NetworkPolicySpec{
		PodSelector: each,
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: every}},
		Egress:      append([]networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{PodSelector: &each}}}}, in.whatMachinesReach()...),
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
	}
	routers := fromGroup("ingress").From
	if in.Payload { // its machines begin at a name that may be led to it by a shared endpoint
		routers = slices.Concat(routers, namespaces(sharedIngress), in.gateway())
	}
	spec.Egress = append(spec.Egress, networkingv1.NetworkPolicyEgressRule{To: routers})
	for _, s := range in.Services {
		nodePort := s.ServicePublishingStrategy.NodePort
		if nodePort == nil {
			continue
		}
		// What a node port leads to is told above; some networks ask for the node's address instead.
		if address, err := netip.ParseAddr(nodePort.Address); err == nil {
			spec.Egress = append(spec.Egress, networkingv1.NetworkPolicyEgressRule{To: block(netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()))})
		}
	}
	return spec
}

// MachinesElsewhere is what a policy of the cluster that runs virtual machines says, where that isn't the management cluster. in.Management has its networks.
// Names are resolved by whom that cluster has.
func MachinesElsewhere(in Input) networkingv1.NetworkPolicySpec {
	spec := in.virtualMachines()
	spec.Egress = append(spec.Egress, namesAreResolved())
	return spec
}

func namesAreResolved() networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{Ports: append(on(corev1.ProtocolUDP, dnsPorts...), tcp(dnsPorts...)...)}
}

// whatMachinesReach beside each other.
func (in Input) whatMachinesReach() []networkingv1.NetworkPolicyEgressRule {
	list := []networkingv1.NetworkPolicyEgressRule{
		{To: in.peers(names.KubeAPIServer), Ports: tcp(append(in.apiPorts(), konnectivityPort)...)},
		{To: in.peers(names.IgnitionServer), Ports: tcp(ignitionPort)},
		{To: in.Management.world()},
	}
	if in.Payload {
		list = append(list,
			networkingv1.NetworkPolicyEgressRule{To: in.peers(ignitionProxy), Ports: tcp(ignitionProxyPort)},
			networkingv1.NetworkPolicyEgressRule{To: in.peers(oauthServer), Ports: tcp(oauthPort)})
		if in.HasRouter {
			list = append(list, networkingv1.NetworkPolicyEgressRule{To: in.peers("router"), Ports: tcp(routerPort)})
		}
	}
	return list
}

func block(prefix netip.Prefix) []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: prefix.String()}}}
}

func labelled(requirements ...metav1.LabelSelectorRequirement) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: requirements}
}

func present(key string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists}
}

func absent(key string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}
}
