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
)

// recordTTL is how long a record may be remembered, in seconds.
const recordTTL = 300

// zone is the ID of the private zone of the hosted cluster; empty: there is none. The error wraps errUndecided when there are several that may be it.
func (c *Consumer) zone(ctx context.Context, obj *hyperv1.AWSEndpointService, hcp *hyperv1.HostedControlPlane) (string, error) {
	if shared := hcp.Spec.Platform.AWS.SharedVPC; shared != nil && shared.LocalZoneID != "" {
		return shared.LocalZoneID, nil
	}
	if obj.Status.DNSZoneID != "" {
		return obj.Status.DNSZoneID, nil
	}
	ids, err := c.zonesNamed(ctx, localZone(hcp))
	switch {
	case err != nil || len(ids) == 0:
		return "", err
	case len(ids) == 1:
		return ids[0], nil
	}
	return c.pick(ctx, ids, hcp)
}

// record is the one of a name, nil when there is none.
func (c *Consumer) record(ctx context.Context, zone, name string) (*types.ResourceRecordSet, error) {
	out, err := c.route53.ListResourceRecordSets(ctx, &route53.ListResourceRecordSetsInput{
		HostedZoneId: &zone, StartRecordName: &name, StartRecordType: types.RRTypeCname, MaxItems: aws.Int32(1),
	})
	if err != nil {
		return nil, err
	}
	for i := range out.ResourceRecordSets {
		if set := &out.ResourceRecordSets[i]; plainName(aws.ToString(set.Name)) == name && set.Type == types.RRTypeCname {
			return set, nil
		}
	}
	return nil, nil
}

// leadsTo tells whether a record is as it is to be.
func leadsTo(set *types.ResourceRecordSet, host string) bool {
	return set != nil && aws.ToInt64(set.TTL) == recordTTL && len(set.ResourceRecords) == 1 &&
		strings.TrimSuffix(aws.ToString(set.ResourceRecords[0].Value), ".") == strings.TrimSuffix(host, ".")
}

// ensureRecords has the names of the control plane lead to the endpoint, and notes them.
func (c *Consumer) ensureRecords(ctx context.Context, obj *hyperv1.AWSEndpointService, hcp *hyperv1.HostedControlPlane, host string) error {
	zone, err := c.zone(ctx, obj, hcp)
	if err != nil {
		return err
	}
	if zone == "" {
		return fmt.Errorf("private hosted zone %s does not exist: `hypershift create infra aws` makes it with the network, or make it for the VPC by hand", strings.TrimSuffix(localZone(hcp), "."))
	}
	var names []string
	for _, name := range records(hcp, obj.Name) {
		names = append(names, strings.TrimSuffix(name, "."))
		set, err := c.record(ctx, zone, name)
		if err == nil && !leadsTo(set, host) {
			err = c.change(ctx, zone, types.ChangeActionUpsert, &types.ResourceRecordSet{
				Name: aws.String(name), Type: types.RRTypeCname, TTL: aws.Int64(recordTTL), ResourceRecords: []types.ResourceRecord{{Value: aws.String(host)}},
			})
		}
		if fault.Is(err, "NoSuchHostedZone") {
			obj.Status.DNSZoneID = "" // it is looked for by its name the next time
		}
		if err != nil {
			return fault.Told("failed to set the record of "+strings.TrimSuffix(name, "."), err)
		}
	}
	obj.Status.DNSZoneID, obj.Status.DNSNames = zone, names
	return nil
}

func (c *Consumer) change(ctx context.Context, zone string, action types.ChangeAction, set *types.ResourceRecordSet) error {
	_, err := c.route53.ChangeResourceRecordSets(ctx, &route53.ChangeResourceRecordSetsInput{
		HostedZoneId: &zone, ChangeBatch: &types.ChangeBatch{Changes: []types.Change{{Action: action, ResourceRecordSet: set}}},
	})
	return err
}

// leadsHere tells whether a record leads to the endpoint of an AWSEndpointService, whose ID is given as far as it is known: an endpoint is called
// ENDPOINT-….SERVICE.REGION.vpce.amazonaws.com. What leads elsewhere is another cluster's of the same name.
func leadsHere(set *types.ResourceRecordSet, obj *hyperv1.AWSEndpointService, endpoint string) bool {
	service := serviceID(obj.Status.EndpointServiceName)
	return slices.ContainsFunc(set.ResourceRecords, func(r types.ResourceRecord) bool {
		labels := strings.Split(strings.ToLower(aws.ToString(r.Value)), ".")
		return service != "" && slices.Contains(labels, service) || endpoint != "" && strings.HasPrefix(labels[0]+"-", endpoint+"-")
	})
}

// removeRecords deletes the names as far as they lead to the endpoint.
func (c *Consumer) removeRecords(ctx context.Context, obj *hyperv1.AWSEndpointService, hcp *hyperv1.HostedControlPlane, endpoint string) error {
	zone, err := c.zone(ctx, obj, hcp)
	if errors.Is(err, errUndecided) {
		return nil // the zone is noted with the first record: there is none of ours
	}
	if err != nil || zone == "" {
		return err
	}
	for _, name := range records(hcp, obj.Name) {
		set, err := c.record(ctx, zone, name)
		if err == nil && set != nil && leadsHere(set, obj, endpoint) {
			err = c.change(ctx, zone, types.ChangeActionDelete, set)
		}
		switch {
		case fault.Is(err, "NoSuchHostedZone"):
			return nil
		case fault.Is(err, "InvalidChangeBatch"):
			return waitFor("The record of %s changed just now", strings.TrimSuffix(name, "."))
		case err != nil:
			return fault.Told("failed to delete the record of "+strings.TrimSuffix(name, "."), err)
		}
	}
	return nil
}
