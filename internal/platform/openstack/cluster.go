package openstack

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cloud"
)

type clusterSpec struct {
	IdentityRef                identityRef            `json:"identityRef"`
	ControlPlaneEndpoint       *cloud.Endpoint        `json:"controlPlaneEndpoint,omitempty"`
	Subnets                    []hyperv1.SubnetParam  `json:"subnets,omitempty"`
	ManagedSubnets             []managedSubnet        `json:"managedSubnets,omitempty"`
	Router                     *hyperv1.RouterParam   `json:"router,omitempty"`
	Network                    *hyperv1.NetworkParam  `json:"network,omitempty"`
	NetworkMTU                 *int                   `json:"networkMTU,omitempty"`
	ExternalNetwork            *hyperv1.NetworkParam  `json:"externalNetwork,omitempty"`
	DisableExternalNetwork     *bool                  `json:"disableExternalNetwork,omitempty"`
	DisableAPIServerFloatingIP bool                   `json:"disableAPIServerFloatingIP"`
	ManagedSecurityGroups      *managedSecurityGroups `json:"managedSecurityGroups,omitempty"`
	Tags                       []string               `json:"tags"`
}

type identityRef struct {
	Name      string `json:"name"`
	CloudName string `json:"cloudName"`
}

type managedSubnet struct {
	CIDR            string                   `json:"cidr"`
	DNSNameservers  []string                 `json:"dnsNameservers,omitempty"`
	AllocationPools []hyperv1.AllocationPool `json:"allocationPools,omitempty"`
}

type managedSecurityGroups struct {
	AllNodes []rule `json:"allNodesSecurityGroupRules"`
}

type rule struct {
	Name           string `json:"name"`
	Direction      string `json:"direction"`
	EtherType      string `json:"etherType"`
	Protocol       string `json:"protocol"`
	PortRangeMin   *int   `json:"portRangeMin,omitempty"`
	PortRangeMax   *int   `json:"portRangeMax,omitempty"`
	RemoteIPPrefix string `json:"remoteIPPrefix"`
}

const noMachineNetwork = "spec.networking.machineNetwork is empty: name the network of machines there, or existing subnets in spec.platform.openstack.subnets"

// clusterOf describes the network of a cluster, and who may reach its machines.
func clusterOf(hc *hyperv1.HostedCluster, endpoint hyperv1.APIEndpoint) (*clusterSpec, error) {
	o, err := specOf(hc)
	if err != nil {
		return nil, err
	}
	machines := hc.Spec.Networking.MachineNetwork
	spec := &clusterSpec{
		IdentityRef:          identityRef{Name: o.IdentityRef.Name, CloudName: o.IdentityRef.CloudName},
		ControlPlaneEndpoint: cloud.EndpointOf(endpoint), Subnets: o.Subnets, Router: o.Router, Network: o.Network, NetworkMTU: o.NetworkMTU,
		ExternalNetwork: o.ExternalNetwork, DisableExternalNetwork: o.DisableExternalNetwork, DisableAPIServerFloatingIP: true,
		Tags: append([]string{"openshiftClusterID=" + hc.Spec.InfraID}, o.Tags...),
	}
	if len(o.Subnets) == 0 {
		if len(machines) == 0 {
			return nil, errors.New(noMachineNetwork)
		}
		subnet := managedSubnet{CIDR: string(machines[0].CIDR)}
		if len(o.ManagedSubnets) > 0 {
			subnet.DNSNameservers, subnet.AllocationPools = o.ManagedSubnets[0].DNSNameservers, o.ManagedSubnets[0].AllocationPools
		}
		spec.ManagedSubnets = []managedSubnet{subnet}
	}
	var cidrs []string
	for _, n := range machines {
		cidrs = append(cidrs, string(n.CIDR))
	}
	spec.ManagedSecurityGroups = &managedSecurityGroups{AllNodes: securityRules(cidrs)}
	return spec, nil
}

const anywhere = "0.0.0.0/0"

// securityRules open machines to each other and to users of the cluster.
func securityRules(machineCIDRs []string) []rule {
	var rules []rule
	for i, cidr := range machineCIDRs {
		for _, r := range []rule{ingress("esp", "esp", cidr), ingress("icmp", "icmp", cidr), ingress("router", "tcp", cidr, 1936), ingress("ssh", "tcp", cidr, 22), ingress("vrrp", "vrrp", cidr)} {
			if i > 0 {
				r.Name = fmt.Sprintf("%s-%d", r.Name, i)
			}
			rules = append(rules, r)
		}
	}
	return append(rules,
		ingress("http", "tcp", anywhere, 80), ingress("https", "tcp", anywhere, 443), ingress("geneve", "udp", anywhere, 6081), ingress("ike", "udp", anywhere, 500),
		ingress("ike-nat", "udp", anywhere, 4500), ingress("internal-tcp", "tcp", anywhere, 9000, 9999), ingress("internal-udp", "udp", anywhere, 9000, 9999),
		ingress("vxlan", "udp", anywhere, 4789),
	)
}

// ingress is a rule for what comes in; ports are none, one, or the first and the last.
func ingress(name, protocol, from string, ports ...int) rule {
	r := rule{Name: name, Direction: "ingress", EtherType: "IPv4", Protocol: protocol, RemoteIPPrefix: from}
	if prefix, err := netip.ParsePrefix(from); err == nil && prefix.Addr().Is6() || err != nil && strings.Contains(from, ":") {
		r.EtherType = "IPv6"
	}
	if len(ports) > 0 {
		r.PortRangeMin, r.PortRangeMax = ptr.To(ports[0]), ptr.To(ports[len(ports)-1])
	}
	return r
}
