package privatelink

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/tags"
	"hcp.internal/platform/internal/endpoints"
)

// balancers are the Services of a control plane with private load balancers. AWSEndpointServices are named after them.
var balancers = []string{endpoints.APIPrivateServiceName, endpoints.PrivateRouterServiceName}

// endpointTag on a VPC endpoint holds the name of its AWSEndpointService.
const endpointTag = "AWSEndpointService"

// loadBalancerName is the name that AWS knows a load balancer by, of its host name NAME-ID.elb.REGION.amazonaws.com; names may hold dashes. Empty: it is
// none of AWS's.
func loadBalancerName(host string) string {
	label, domain, _ := strings.Cut(host, ".")
	if !strings.HasPrefix(domain, "elb.") || !strings.Contains(domain, ".amazonaws.com") {
		return ""
	}
	if i := strings.LastIndex(label, "-"); i > 0 && i < len(label)-1 {
		return label[:i]
	}
	return ""
}

// ownsBalancer tells whether an ARN is that of the network load balancer of this name.
func ownsBalancer(arn, name string) bool {
	return name != "" && strings.Contains(arn, ":loadbalancer/net/"+name+"/")
}

// serviceID is the ID of an endpoint service of its name com.amazonaws.vpce.REGION.vpce-svc-…; empty: that is no such name.
func serviceID(name string) string {
	if i := strings.LastIndex(name, "."); i > 0 && strings.HasPrefix(name[i+1:], "vpce-svc-") {
		return name[i+1:]
	}
	return ""
}

// maxSubnets is how many an AWSEndpointService may name.
const maxSubnets = 10

// subnetsOf are the subnets of a cluster's machines, sorted: those that its NodePools name by ID, and Karpenter's.
func subnetsOf(pools []hyperv1.NodePool, hc *hyperv1.HostedCluster, karpenter string) ([]string, error) {
	set := map[string]bool{}
	for i := range pools {
		pool := &pools[i]
		if pool.Namespace != hc.Namespace || pool.Spec.ClusterName != hc.Name || !pool.DeletionTimestamp.IsZero() || pool.Spec.Platform.AWS == nil {
			continue
		}
		if id := aws.ToString(pool.Spec.Platform.AWS.Subnet.ID); id != "" {
			set[id] = true
		}
	}
	var more []string
	if json.Unmarshal([]byte(karpenter), &more) == nil { // what can't be read counts for nothing
		for _, id := range more {
			set[id] = true
		}
	}
	list := slices.Sorted(maps.Keys(set))
	if len(list) > maxSubnets {
		return list[:maxSubnets], fmt.Errorf("NodePools name %d subnets, and an endpoint takes %d: machines elsewhere reach it through those, or name fewer", len(list), maxSubnets)
	}
	return list, nil
}

// principals may connect to the endpoint service: the control plane's role, and whom the user names. AWS keeps roles without their paths. Sorted.
func principals(spec *hyperv1.AWSPlatformSpec) []string {
	set := map[string]bool{}
	for _, arn := range append([]string{spec.RolesRef.ControlPlaneOperatorARN}, spec.AdditionalAllowedPrincipals...) {
		if arn != "" {
			set[arn] = true
		}
	}
	if own := spec.RolesRef.ControlPlaneOperatorARN; own != withoutPath(own) {
		delete(set, own)
		set[withoutPath(own)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// withoutPath turns arn:aws:iam::1:role/some/path/name into arn:aws:iam::1:role/name.
func withoutPath(arn string) string {
	before, path, ok := strings.Cut(arn, ":role/")
	if !ok {
		return arn
	}
	return before + ":role/" + path[strings.LastIndex(path, "/")+1:]
}

// difference is what brings have to want.
func difference(have, want []string) (add, remove []string) {
	for _, w := range want {
		if !slices.Contains(have, w) {
			add = append(add, w)
		}
	}
	for _, h := range have {
		if !slices.Contains(want, h) {
			remove = append(remove, h)
		}
	}
	return add, remove
}

// apart are subnets of which no two are in one zone, which AWS would refuse: of each zone the first by ID.
func apart(subnets []types.Subnet) []string {
	byZone := map[string]string{}
	for _, s := range subnets {
		zone := cmp.Or(aws.ToString(s.AvailabilityZoneId), aws.ToString(s.AvailabilityZone))
		if id := aws.ToString(s.SubnetId); byZone[zone] == "" || id < byZone[zone] {
			byZone[zone] = id
		}
	}
	return slices.Sorted(maps.Values(byZone))
}

// localZone is the private zone of names that machines use, with the dot at its end.
func localZone(hcp *hyperv1.HostedControlPlane) string { return hcp.Name + ".hypershift.local." }

// records are the names that lead to an endpoint, with dots at their ends.
func records(hcp *hyperv1.HostedControlPlane, name string) []string {
	zone := localZone(hcp)
	switch name {
	case endpoints.APIPrivateServiceName:
		return []string{"api." + zone}
	case endpoints.PrivateRouterServiceName:
		list := []string{"*.apps." + zone}
		if s := endpoints.StrategyFor(hcp, hyperv1.APIServer); s != nil && s.Type == hyperv1.Route {
			list = append(list, "api."+zone)
		}
		return list
	}
	return nil
}

// plainName undoes how Route 53 writes wildcards.
func plainName(name string) string { return strings.ReplaceAll(name, `\052`, "*") }

// groupName is the name of an endpoint's security group.
func groupName(infraID, endpoint string) string { return infraID + "-vpce-" + endpoint }

// port is the one that machines reach an endpoint at.
func port(endpoint string) int32 {
	if endpoint == endpoints.APIPrivateServiceName {
		return endpoints.InternalAPIPort
	}
	return endpoints.RoutePort
}

// tagsOf are those of everything that is made for an AWSEndpointService in the VPC.
func tagsOf(hcp *hyperv1.HostedControlPlane, obj *hyperv1.AWSEndpointService) tags.Set {
	set := tags.Set{}
	for _, t := range obj.Spec.ResourceTags {
		set[t.Key] = t.Value
	}
	set[tags.Cluster(hcp.Spec.InfraID)] = tags.Owned
	return set
}
