package workers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/tags"
)

// AppliedTagsAnnotation on a HostedControlPlane holds, as a JSON map, the tags that the security group was last given.
const AppliedTagsAnnotation = "hypershift.openshift.io/last-applied-security-group-tags"

const description = "default worker security group"

// GroupName is the name of a cluster's security group.
func GroupName(infraID string) string { return infraID + "-default-sg" }

// allPorts stands for a protocol that has none, or for all of them.
const allPorts = -1

// among are the ports that workers reach each other at.
var among = []struct {
	protocol string
	from, to int32
	what     string
}{
	{"udp", 4789, 4789, "VXLAN"}, {"udp", 6081, 6081, "GENEVE"}, {"udp", 500, 500, "IKE"}, {"udp", 4500, 4500, "IKE through NAT"}, {"50", allPorts, allPorts, "ESP"},
	{"tcp", 9000, 9999, "services of the host"}, {"udp", 9000, 9999, "services of the host"}, {"tcp", 10250, 10250, "kubelet"},
	{"tcp", 30000, 32767, "node ports"}, {"udp", 30000, 32767, "node ports"},
}

// ingress are the rules of a group: workers among themselves, and from the networks of machines. Egress is as AWS has it: all.
func ingress(groupID, owner string, networks []string) []types.IpPermission {
	var rules []types.IpPermission
	for _, p := range among {
		rules = append(rules, types.IpPermission{
			IpProtocol: aws.String(p.protocol), FromPort: aws.Int32(p.from), ToPort: aws.Int32(p.to),
			UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: aws.String(groupID), UserId: aws.String(owner), Description: aws.String(p.what)}},
		})
	}
	for _, network := range networks {
		from := []types.IpRange{{CidrIp: aws.String(network)}}
		rules = append(rules,
			types.IpPermission{IpProtocol: aws.String("icmp"), FromPort: aws.Int32(allPorts), ToPort: aws.Int32(allPorts), IpRanges: from},
			types.IpPermission{IpProtocol: aws.String("tcp"), FromPort: aws.Int32(22), ToPort: aws.Int32(22), IpRanges: from})
	}
	return rules
}

// wantedTags are those of the group.
func wantedTags(hcp *hyperv1.HostedControlPlane) tags.Set {
	set := tags.Set{}
	for _, t := range hcp.Spec.Platform.AWS.ResourceTags {
		set[t.Key] = t.Value
	}
	add := func(key, value string) {
		if _, there := set[key]; !there {
			set[key] = value
		}
	}
	add(tags.Cluster(hcp.Spec.InfraID), tags.Owned)
	add(tags.Name, GroupName(hcp.Spec.InfraID))
	if hcp.Spec.AutoNode != nil {
		add(tags.KarpenterDiscovery, hcp.Spec.InfraID)
	}
	return set
}

// tagChange is what brings a group from the tags that it was last given to others. Tags that somebody else gave it stay.
func tagChange(before, want tags.Set) (set tags.Set, remove []string) {
	for _, key := range before.Keys() {
		if _, stays := want[key]; !stays {
			remove = append(remove, key)
		}
	}
	return tags.Missing(before, want), remove
}

// applied reads AppliedTagsAnnotation; ok tells whether it is there and can be read.
func applied(hcp *hyperv1.HostedControlPlane) (set tags.Set, ok bool) {
	text, there := hcp.Annotations[AppliedTagsAnnotation]
	return set, there && json.Unmarshal([]byte(text), &set) == nil
}

func encode(set tags.Set) (string, error) {
	raw, err := json.Marshal(set)
	if err != nil {
		return "", fmt.Errorf("encoding tags: %w", err)
	}
	return string(raw), nil
}

// networks are those of machines, sorted.
func networks(hcp *hyperv1.HostedControlPlane) []string {
	set := map[string]bool{}
	for _, n := range hcp.Spec.Networking.MachineNetwork {
		set[string(n.CIDR)] = true
	}
	return slices.Sorted(maps.Keys(set))
}
