package aws

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/tags"
)

const owned = tags.Owned

// clusterTag is the key of the tag that everything of a cluster bears.
func clusterTag(infraID string) string { return tags.Cluster(infraID) }

// spotTag lets the handler of interruptions know its instances.
const spotTag = "aws-node-termination-handler/managed"

// clusterTags are those of a HostedCluster as the provider takes them. Of a key that is there twice the last counts.
func clusterTags(list []hyperv1.AWSClusterResourceTag) map[string]any {
	out := map[string]any{}
	for _, tag := range list {
		out[tag.Key] = tag.Value
	}
	return out
}

// poolTags are what machines of a pool are tagged with, and what of the pool's own tags had to give way, or gave.
type poolTags struct {
	all map[string]any
	// blocked and overriding are the keys of the pool that differ from the cluster's: which stay the cluster's, and which don't.
	blocked, overriding []string
}

func tagsOf(hc *hyperv1.HostedCluster, pool *hyperv1.NodePool) poolTags {
	out := poolTags{all: clusterTags(specOf(hc).ResourceTags)}
	allowed := map[string]bool{}
	for _, tag := range specOf(hc).ResourceTags {
		allowed[tag.Key] = tag.OverridePolicy == hyperv1.AWSTagOverrideAllow
	}
	mine := map[string]string{}
	for _, tag := range poolSpec(pool).ResourceTags {
		mine[tag.Key] = tag.Value
	}
	for _, key := range slices.Sorted(maps.Keys(mine)) {
		cluster, both := out.all[key]
		switch {
		case both && cluster == mine[key]:
		case both && !allowed[key]:
			out.blocked = append(out.blocked, key)
			continue
		case both:
			out.overriding = append(out.overriding, key)
		}
		out.all[key] = mine[key]
	}
	if key := clusterTag(hc.Spec.InfraID); out.all[key] == nil {
		out.all[key] = owned
	}
	if isSpot(pool) {
		out.all[spotTag] = ""
	}
	return out
}

// message is what condition AWSResourceTagConflict tells.
func (t poolTags) message() string {
	var parts []string
	if len(t.blocked) > 0 {
		parts = append(parts, fmt.Sprintf("spec.platform.aws.resourceTags: the HostedCluster has other values for %s, which count: "+
			"set overridePolicy Allow there, or take them out here", strings.Join(t.blocked, ", ")))
	}
	if len(t.overriding) > 0 {
		parts = append(parts, "values of the HostedCluster are overridden for "+strings.Join(t.overriding, ", "))
	}
	return strings.Join(parts, "; ")
}
