package payload

import (
	"fmt"
	"net/netip"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Prefix lengths of the networks of nodes, where spec.networking doesn't say.
const hostPrefixIPv4, hostPrefixIPv6 = 23, 64

// Networks are those of pods and of Services, as OpenShift's Network has them in clusterNetwork and serviceNetwork. Machines boot with them before the hosted cluster has
// that object.
func Networks(hcp *hyperv1.HostedControlPlane) (pods, services []any, _ error) {
	pods, services = []any{}, []any{}
	for i, n := range hcp.Spec.Networking.ClusterNetwork {
		prefix, err := netip.ParsePrefix(string(n.CIDR))
		if err != nil {
			return nil, nil, fmt.Errorf("spec.networking.clusterNetwork[%d].cidr %q is not a network: write one such as 10.132.0.0/14", i, n.CIDR)
		}
		host := int64(n.HostPrefix)
		switch {
		case host != 0:
		case prefix.Addr().Is4():
			host = hostPrefixIPv4
		default:
			host = hostPrefixIPv6
		}
		pods = append(pods, map[string]any{"cidr": string(n.CIDR), "hostPrefix": host})
	}
	for _, n := range hcp.Spec.Networking.ServiceNetwork {
		services = append(services, string(n.CIDR))
	}
	return pods, services, nil
}
