package openshift

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// What a network of virtual machines in virtual machines has to differ in from the one that these run in, which has the defaults.
const (
	nestedVXLANPort, nestedGenevePort = 9879, 9880
	nestedIPv4, nestedIPv6            = "100.66.0.0/16", "fd99::/64"
	// nestedMTU is the least that packets of the hosted cluster should have left.
	nestedMTU = 8800
)

// networkOperatorKey is where Hosted has the settings of the network operator.
const networkOperatorKey = "operator Network /cluster"

// networkOperator are the settings of the pod network that config.openshift.io has no field for.
func networkOperator(in Input) ([]Action, error) {
	var wanted *hyperv1.ClusterNetworkOperatorSpec
	if c := in.HCP.Spec.OperatorConfiguration; c != nil {
		wanted = c.ClusterNetworkOperator
	}
	return []Action{edit(operatorV1, "Network", "", cluster, func(live map[string]any) {
		spec := section(live, "spec")
		setIfEmpty(spec, "managementState", "Managed")
		if wanted != nil && wanted.DisableMultiNetwork != nil && *wanted.DisableMultiNetwork {
			spec["disableMultiNetwork"] = true
		}
		ovn := func(path ...string) map[string]any {
			return section(spec, append([]string{"defaultNetwork", "ovnKubernetesConfig"}, path...)...)
		}
		networkType := in.HCP.Spec.Networking.NetworkType
		switch {
		case in.on(hyperv1.KubevirtPlatform) && networkType == hyperv1.OpenShiftSDN:
			setIfEmpty(section(spec, "defaultNetwork", "openshiftSDNConfig"), "vxlanPort", int64(nestedVXLANPort))
		case in.on(hyperv1.KubevirtPlatform) && networkType == hyperv1.OVNKubernetes:
			setIfEmpty(ovn(), "genevePort", int64(nestedGenevePort))
			setIfEmpty(ovn(), "v4InternalSubnet", nestedIPv4)
			if hasIPv6(in.HCP) {
				setIfEmpty(ovn("ipv6"), "internalJoinSubnet", nestedIPv6)
			}
		case in.on(hyperv1.PowerVSPlatform) && networkType == hyperv1.OVNKubernetes:
			ovn("gatewayConfig")["routingViaHost"] = true
		}
		if wanted == nil || wanted.OVNKubernetesConfig == nil || networkType != hyperv1.OVNKubernetes {
			return
		}
		copyOVN(wanted.OVNKubernetesConfig, ovn)
	})}, nil
}

// copyOVN sets what the HostedCluster says, and leaves the rest.
func copyOVN(c *hyperv1.OVNKubernetesConfig, ovn func(path ...string) map[string]any) {
	set := func(m map[string]any, key, value string) {
		if value != "" {
			m[key] = value
		}
	}
	if c.IPv4 != nil {
		set(ovn("ipv4"), "internalJoinSubnet", string(c.IPv4.InternalJoinSubnet))
		set(ovn("ipv4"), "internalTransitSwitchSubnet", string(c.IPv4.InternalTransitSwitchSubnet))
	}
	if c.IPv6 != nil {
		set(ovn("ipv6"), "internalJoinSubnet", string(c.IPv6.InternalJoinSubnet))
		set(ovn("ipv6"), "internalTransitSwitchSubnet", string(c.IPv6.InternalTransitSwitchSubnet))
	}
	if c.MTU != nil {
		ovn()["mtu"] = int64(*c.MTU)
	}
	set(ovn(), "v4InternalSubnet", c.V4InternalSubnet)
	set(ovn(), "v6InternalSubnet", c.V6InternalSubnet)
}

func hasIPv6(hcp *hyperv1.HostedControlPlane) bool {
	var all []hyperv1.CIDRBlock
	for _, n := range hcp.Spec.Networking.ClusterNetwork {
		all = append(all, n.CIDR)
	}
	for _, n := range hcp.Spec.Networking.ServiceNetwork {
		all = append(all, n.CIDR)
	}
	for _, n := range hcp.Spec.Networking.MachineNetwork {
		all = append(all, n.CIDR)
	}
	for _, c := range all {
		if p, err := netip.ParsePrefix(string(c)); err == nil && p.Addr().Is6() {
			return true
		}
	}
	return false
}

// Conditions are what of the hosted cluster the HostedControlPlane tells beside the success of a pass.
func Conditions(in Input) []metav1.Condition {
	if !in.on(hyperv1.KubevirtPlatform) || in.HCP.Spec.Networking.NetworkType != hyperv1.OVNKubernetes {
		return nil
	}
	c := metav1.Condition{
		Type: hyperv1.ValidKubeVirtInfraNetworkMTU, Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason, Message: hyperv1.AllIsWellMessage, ObservedGeneration: in.HCP.Generation,
	}
	mtu, _ := peek(in.Hosted.Objects[networkOperatorKey], "spec", "defaultNetwork", "ovnKubernetesConfig")["mtu"].(int64)
	if mtu != 0 && mtu < nestedMTU {
		c.Status, c.Reason = metav1.ConditionFalse, hyperv1.KubeVirtSuboptimalMTUReason
		c.Message = "packets of the hosted cluster's pods are small, which costs throughput: the network of the management cluster should have jumbo frames, so that at least 8800 bytes are left"
	}
	return []metav1.Condition{c}
}
