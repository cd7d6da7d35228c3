package payload

import (
	"slices"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// NoProxy are the destinations that what runs beside the control plane reaches without the proxy of the hosted cluster, sorted: the hosted cluster itself,
// its cloud's own services, and what the user says. It is not quite what nodes are told, who have a proxy for other reasons.
func NoProxy(hcp *hyperv1.HostedControlPlane) []string {
	list := append([]string{"127.0.0.1", "localhost", ".svc", ".cluster.local", ".hypershift.local"}, CloudDestinations(hcp)...)
	n := hcp.Spec.Networking
	for _, e := range n.MachineNetwork {
		if cidr := string(e.CIDR); cidr != "0.0.0.0/0" { // which says that nothing is known, and would leave nothing to the proxy
			list = append(list, cidr)
		}
	}
	for _, e := range n.ServiceNetwork {
		list = append(list, string(e.CIDR))
	}
	for _, e := range n.ClusterNetwork {
		list = append(list, string(e.CIDR))
	}
	if azure := hcp.Spec.Platform.Azure; azure != nil && hcp.Spec.Platform.Type == hyperv1.AzurePlatform && azure.Cloud != "" && azure.Cloud != "AzurePublicCloud" {
		list = append(list, "168.63.129.16")
	}
	list = append(list, OwnNoProxy(hcp)...)
	slices.Sort(list)
	return slices.Compact(list)
}

// CloudDestinations are the services that machines of a cloud reach without leaving it.
func CloudDestinations(hcp *hyperv1.HostedControlPlane) []string {
	const metadata = "169.254.169.254"
	switch p := hcp.Spec.Platform; {
	case p.Type == hyperv1.AWSPlatform && p.AWS != nil:
		domain := ".ec2.internal"
		if p.AWS.Region != "us-east-1" {
			domain = "." + p.AWS.Region + ".compute.internal"
		}
		return []string{metadata, domain}
	case p.Type == hyperv1.AzurePlatform:
		return []string{metadata}
	}
	return nil
}

// OwnNoProxy is what the user says in spec.configuration.proxy.noProxy.
func OwnNoProxy(hcp *hyperv1.HostedControlPlane) []string {
	c := hcp.Spec.Configuration
	if c == nil || c.Proxy == nil {
		return nil
	}
	var list []string
	for own := range strings.SplitSeq(c.Proxy.NoProxy, ",") {
		if own = strings.TrimSpace(own); own != "" {
			list = append(list, own)
		}
	}
	return list
}
