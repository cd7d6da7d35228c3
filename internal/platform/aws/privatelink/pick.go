package privatelink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/tags"
)

// errUndecided is wrapped by the error of zone when there are several of one name, and nothing tells which is the hosted cluster's.
var errUndecided = errors.New("it can't be told which is the hosted cluster's")

// claim is what tells whether a zone is the hosted cluster's. The role of a control plane may do little: what AWS doesn't let it ask is not known.
type claim struct {
	id string
	// onVPC: the zone is associated with the cluster's VPC. tagged: it has the cluster's tag.
	onVPC, tagged bool
	// foreign: its VPCs and tags are known, and are another cluster's.
	foreign bool
	// readable: the role may read its records, as that of `create iam aws` may in its own zone alone.
	readable bool
}

// choose picks the one zone that is the cluster's, by the best of what is known; empty: nothing tells.
func choose(claims []claim) string {
	for _, ours := range []func(claim) bool{
		func(c claim) bool { return c.onVPC },
		func(c claim) bool { return c.tagged },
		func(c claim) bool { return c.readable && !c.foreign },
	} {
		var found []string
		for _, c := range claims {
			if ours(c) {
				found = append(found, c.id)
			}
		}
		if len(found) == 1 {
			return found[0]
		}
		if len(found) > 1 {
			return ""
		}
	}
	return ""
}

// zonesNamed are the IDs of the private zones of a name, which has a dot at its end.
func (c *Consumer) zonesNamed(ctx context.Context, name string) (ids []string, _ error) {
	in := &route53.ListHostedZonesInput{}
	for range maxPages {
		out, err := c.route53.ListHostedZones(ctx, in)
		if err != nil {
			return nil, fault.Told("failed to list hosted zones", err)
		}
		for _, z := range out.HostedZones {
			if aws.ToString(z.Name) == name && z.Config != nil && z.Config.PrivateZone {
				ids = append(ids, strings.TrimPrefix(aws.ToString(z.Id), "/hostedzone/"))
			}
		}
		if in.Marker = out.NextMarker; !out.IsTruncated {
			break
		}
	}
	return ids, nil
}

// pick finds the hosted cluster's own among several zones of one name: other clusters in the account may be called the same.
func (c *Consumer) pick(ctx context.Context, ids []string, hcp *hyperv1.HostedControlPlane) (string, error) {
	vpc := ""
	if provider := hcp.Spec.Platform.AWS.CloudProviderConfig; provider != nil {
		vpc = provider.VPC
	}
	var claims []claim
	for _, id := range ids {
		one, err := c.claimOf(ctx, id, vpc, hcp.Spec.InfraID)
		if err != nil {
			return "", fault.Told("failed to look at private hosted zone "+id, err)
		}
		claims = append(claims, one)
	}
	if id := choose(claims); id != "" {
		return id, nil
	}
	name := strings.TrimSuffix(localZone(hcp), ".")
	return "", fmt.Errorf("there are %d private hosted zones %s (%s), and %w: associate one of them with VPC %s, or delete the others, and let role %s call route53:GetHostedZone",
		len(ids), name, strings.Join(ids, ", "), errUndecided, vpc, hcp.Spec.Platform.AWS.RolesRef.ControlPlaneOperatorARN)
}

// claimOf asks about a zone. A refusal tells nothing; other errors pass.
func (c *Consumer) claimOf(ctx context.Context, id, vpc, infraID string) (claim, error) {
	one := claim{id: id}
	zone, err := c.route53.GetHostedZone(ctx, &route53.GetHostedZoneInput{Id: &id})
	if err != nil && !fault.Denied(err) {
		return one, err
	}
	asked := err == nil
	if asked {
		one.onVPC = slices.ContainsFunc(zone.VPCs, func(v types.VPC) bool { return vpc != "" && aws.ToString(v.VPCId) == vpc })
	}
	list, err := c.route53.ListTagsForResource(ctx, &route53.ListTagsForResourceInput{ResourceId: &id, ResourceType: types.TagResourceTypeHostedzone})
	if err != nil && !fault.Denied(err) {
		return one, err
	}
	asked = asked && err == nil
	if err == nil && list.ResourceTagSet != nil {
		one.tagged = slices.ContainsFunc(list.ResourceTagSet.Tags, func(t types.Tag) bool {
			return aws.ToString(t.Key) == tags.Cluster(infraID) && aws.ToString(t.Value) == tags.Owned
		})
	}
	one.foreign = asked && !one.onVPC && !one.tagged
	_, err = c.route53.ListResourceRecordSets(ctx, &route53.ListResourceRecordSetsInput{HostedZoneId: &id, MaxItems: aws.Int32(1)})
	if err != nil && !fault.Denied(err) {
		return one, err
	}
	one.readable = err == nil
	return one, nil
}
