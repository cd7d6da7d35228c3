package privatelink

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/endpoints"
)

// Tags on what is made. Azure allows no slashes in their names.
const (
	clusterTag = "kubernetes.io_cluster_" // and the cluster behind it
	owned      = "owned"
	typeTag    = "hypershift.openshift.io_resource-type"
	// hostedClusterTag on a Private Link service is the HostedCluster that it is of, as names.BackReference.
	hostedClusterTag = "hypershift.openshift.io_hosted-cluster"
	// aliasTag on a private endpoint holds what it was made to connect to.
	aliasTag = "hypershift.openshift.io_private-link-service-alias"
)

// Values of typeTag.
const (
	typeService  = "private-link-service"
	typeEndpoint = "private-endpoint"
	typeZone     = "private-dns-zone"
)

// natSubnetAnnotation on an AzurePrivateLinkService holds the ID of the subnet that was made for it, from before it is made. It goes with the service.
const natSubnetAnnotation = "hypershift.openshift.io/azure-pls-nat-subnet"

// serviceName is the name of the Private Link service of a link; the cluster's ID makes it the only one.
func serviceName(link, clusterID string) string {
	if link == endpoints.PrivateRouterServiceName {
		return "pls-" + clusterID
	}
	return "pls-" + link + "-" + clusterID
}

// natSubnetName is that of a subnet which is made.
func natSubnetName(infraID string) string { return infraID + "-pls-nat" }

// lastOf is the name of a resource of its ID, or otherwise when there is no ID.
func lastOf(id, otherwise string) string {
	if i := strings.LastIndex(id, "/"); i >= 0 && i < len(id)-1 {
		return id[i+1:]
	}
	return otherwise
}

// idOf is the ID of a resource of network services. Azure's own answers vary in upper and lower case, and the definitions of our kinds don't.
func idOf(subscription, group, kind, name string) string {
	return "/subscriptions/" + subscription + "/resourceGroups/" + group + "/providers/Microsoft.Network/" + kind + "/" + name
}

// networkOf takes the ID of a subnet apart.
func networkOf(subnetID string) (group, network, subnet string, _ error) {
	id, err := arm.ParseResourceID(subnetID)
	if err != nil || id.Parent == nil || id.Parent.Name == "" {
		return "", "", "", fmt.Errorf("%q is no ID of a subnet", subnetID)
	}
	return id.ResourceGroupName, id.Parent.Name, id.Name, nil
}

// allowed are the subscriptions that may connect, sorted: the hosted cluster's, and those that the user names.
func allowed(spec hyperv1.AzurePrivateLinkServiceSpec) []string {
	list := []string{strings.ToLower(string(spec.SubscriptionID))}
	for _, s := range spec.AdditionalAllowedSubscriptions {
		list = append(list, strings.ToLower(string(s)))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// same compares subscriptions of Azure with those that are to be, which are sorted and in lower case.
func same(have []*string, want []string) bool {
	list := make([]string, 0, len(have))
	for _, s := range have {
		list = append(list, strings.ToLower(value(s)))
	}
	slices.Sort(list)
	return slices.Equal(slices.Compact(list), want)
}

// natSize is how many bits a network for address translation has.
const natSize = 24

// freeSubnet is the first network of natSize in a virtual network that overlaps with none of its subnets, and isn't the first of its range.
func freeSubnet(ranges, taken []string) (string, error) {
	var used []netip.Prefix
	for _, t := range taken {
		if p, err := netip.ParsePrefix(t); err == nil {
			used = append(used, p.Masked())
		}
	}
	for _, text := range ranges {
		all, err := netip.ParsePrefix(text)
		if err != nil || !all.Addr().Is4() || all.Bits() > natSize {
			continue
		}
		count := 1 << min(natSize-all.Bits(), 8)
		at := all.Masked().Addr().As4()
		for i := range count {
			if i == 0 && count > 1 {
				continue // by custom that of machines
			}
			third := at
			third[2] += byte(i)
			p := netip.PrefixFrom(netip.AddrFrom4(third), natSize)
			if !slices.ContainsFunc(used, p.Overlaps) {
				return p.String(), nil
			}
		}
	}
	return "", fmt.Errorf("the virtual network of the load balancer (%s) has no room for a subnet of /%d: make one with network policies for Private Link services disabled, and name it by "+
		"spec.platform.azure.private.privateLink.natSubnetID of a new HostedCluster", strings.Join(ranges, ", "), natSize)
}

// record is a name that leads to a private endpoint, relative to its zone.
type record struct{ zone, name string }

// localZone is the private zone of names that machines use.
func localZone(hcp *hyperv1.HostedControlPlane) string { return hcp.Name + ".hypershift.local" }

// localRecords are the names that machines use.
func localRecords(hcp *hyperv1.HostedControlPlane, link string) []record {
	if link != endpoints.PrivateRouterServiceName {
		return nil
	}
	return []record{{localZone(hcp), "api"}, {localZone(hcp), "*.apps"}}
}

// baseRecords are the names that users know, in the zone of the base domain, as far as they are in it.
func baseRecords(hcp *hyperv1.HostedControlPlane, obj *hyperv1.AzurePrivateLinkService) (list []record) {
	zone := string(obj.Spec.BaseDomain)
	if zone == "" {
		return nil
	}
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer} {
		s := endpoints.StrategyFor(hcp, service)
		if s == nil {
			continue
		}
		host, link, short := "", endpoints.PrivateRouterServiceName, map[hyperv1.ServiceType]string{hyperv1.APIServer: "api-", hyperv1.OAuthServer: "oauth-"}[service]
		switch {
		case s.Type == hyperv1.Route && s.Route != nil:
			host = string(s.Route.Hostname)
		case s.Type == hyperv1.LoadBalancer && service == hyperv1.OAuthServer:
			link = endpoints.OAuthServiceName
			if s.LoadBalancer != nil {
				host = string(s.LoadBalancer.Hostname)
			}
		case s.Type != hyperv1.Route:
			continue
		}
		name, in := strings.CutSuffix(cmp.Or(host, short+hcp.Name+"."+zone), "."+zone)
		if link == obj.Name && in {
			list = append(list, record{zone, name})
		}
	}
	return list
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
