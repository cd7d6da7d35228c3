package privatelink

import (
	"context"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// recordTTL is how long a record may be remembered, in seconds.
const recordTTL = 300

// recordOwner is metadata of a record, whose value is the infraID of its cluster.
const recordOwner = "hypershiftInfraID"

// everywhere is the location of zones and their links.
const everywhere = "global"

// Suffixes of the names of links from zones to the virtual network, behind the name of the AzurePrivateLinkService.
const (
	localLink = "-vnet-link"
	baseLink  = "-basedomain-vnet-link"
)

// ensureZone makes a private zone, unless it is there.
func (c *Consumer) ensureZone(ctx context.Context, group, zone string, tags map[string]*string) error {
	_, err := c.zones.Get(ctx, group, zone, nil)
	if err == nil {
		return nil
	}
	if gone(err) {
		poller, begun := c.zones.BeginCreateOrUpdate(ctx, group, zone, armprivatedns.PrivateZone{Location: to.Ptr(everywhere), Tags: tags}, nil)
		_, err = settle(ctx, "Private zone "+zone, poller, begun)
	}
	return told("failed to make private zone "+zone, err)
}

// linksOf are the links of a zone; none without a zone.
func (c *Consumer) linksOf(ctx context.Context, group, zone string) (list []*armprivatedns.VirtualNetworkLink, _ error) {
	pager := c.links.NewListPager(group, zone, nil)
	for range maxPages {
		if !pager.More() {
			break
		}
		page, err := pager.NextPage(ctx)
		if gone(err) {
			return nil, nil
		} else if err != nil {
			return nil, told("failed to list the links of private zone "+zone, err)
		}
		list = append(list, page.Value...)
	}
	return list, nil
}

// ensureLink has a virtual network use a zone. A network takes one link to a zone, whoever made it.
func (c *Consumer) ensureLink(ctx context.Context, group, zone, link, network string, tags map[string]*string) error {
	list, err := c.linksOf(ctx, group, zone)
	if err != nil {
		return err
	}
	for _, l := range list {
		if l.Properties != nil && l.Properties.VirtualNetwork != nil && strings.EqualFold(value(l.Properties.VirtualNetwork.ID), network) {
			return nil
		}
		if strings.EqualFold(value(l.Name), link) {
			return fmt.Errorf("link %s of private zone %s leads to another virtual network: remove that link, or give each hosted cluster a resource group of its own", link, zone)
		}
	}
	poller, err := c.links.BeginCreateOrUpdate(ctx, group, zone, link, armprivatedns.VirtualNetworkLink{
		Location: to.Ptr(everywhere), Tags: tags,
		Properties: &armprivatedns.VirtualNetworkLinkProperties{RegistrationEnabled: to.Ptr(false), VirtualNetwork: &armprivatedns.SubResource{ID: &network}},
	}, nil)
	_, err = settle(ctx, "Link "+link, poller, err)
	return told("failed to link private zone "+zone+" to the virtual network", err)
}

// ensureRecord has a name lead to an address. A record of others stays as it is, and will do if it leads there already.
func (c *Consumer) ensureRecord(ctx context.Context, group string, r record, address, infraID string) error {
	out, err := c.records.Get(ctx, group, r.zone, armprivatedns.RecordTypeA, r.name, nil)
	if err != nil && !gone(err) {
		return told("failed to read the record of "+r.name+"."+r.zone, err)
	}
	only := &armprivatedns.RecordSetsClientCreateOrUpdateOptions{IfNoneMatch: to.Ptr("*")}
	if err == nil {
		live := out.Properties
		if live == nil {
			live = &armprivatedns.RecordSetProperties{}
		}
		leads, ours := "nothing", value(live.Metadata[recordOwner]) == infraID
		if len(live.ARecords) > 0 {
			leads = value(live.ARecords[0].IPv4Address)
		}
		there := len(live.ARecords) == 1 && leads == address
		switch {
		case there && (!ours || value(live.TTL) == recordTTL):
			return nil
		case !ours:
			return fmt.Errorf("record %s of private zone %s leads to %s and isn't this cluster's (it lacks metadata %s=%s): remove the record, or publish the control plane under other names",
				r.name, r.zone, leads, recordOwner, infraID)
		}
		only = &armprivatedns.RecordSetsClientCreateOrUpdateOptions{IfMatch: out.Etag}
	}
	_, err = c.records.CreateOrUpdate(ctx, group, r.zone, armprivatedns.RecordTypeA, r.name, armprivatedns.RecordSet{Properties: &armprivatedns.RecordSetProperties{
		TTL: to.Ptr[int64](recordTTL), ARecords: []*armprivatedns.ARecord{{IPv4Address: &address}}, Metadata: map[string]*string{recordOwner: &infraID},
	}}, only)
	if changed(err) { // or an answer was lost, and it is ours
		return waitFor("Record %s of private zone %s was written just now", r.name, r.zone)
	}
	return told("failed to set the record of "+r.name+"."+r.zone, err)
}

// ensureNames has the names of the control plane lead to the endpoint, and notes the zones.
func (c *Consumer) ensureNames(ctx context.Context, obj *hyperv1.AzurePrivateLinkService, hcp *hyperv1.HostedControlPlane) error {
	group, tags := obj.Spec.ResourceGroupName, tagsOf(hcp, typeZone)
	for _, z := range []struct {
		zone, link string
		records    []record
		note       func(id string)
	}{
		{localZone(hcp), localLink, localRecords(hcp, obj.Name), func(id string) {
			obj.Status.PrivateDNSZoneID, obj.Status.DNSZoneName = hyperv1.AzurePrivateDNSZoneID(id), hyperv1.AzureDNSName(localZone(hcp))
		}},
		{string(obj.Spec.BaseDomain), baseLink, baseRecords(hcp, obj), func(id string) { obj.Status.BaseDomainDNSZoneID = hyperv1.AzurePrivateDNSZoneID(id) }},
	} {
		if len(z.records) == 0 {
			continue
		}
		if err := c.ensureZone(ctx, group, z.zone, tags); err != nil {
			return err
		}
		z.note(idOf(string(obj.Spec.SubscriptionID), group, "privateDnsZones", z.zone))
		if err := c.ensureLink(ctx, group, z.zone, obj.Name+z.link, obj.Spec.GuestVNetID, tags); err != nil {
			return err
		}
		for _, r := range z.records {
			if err := c.ensureRecord(ctx, group, r, string(obj.Status.PrivateEndpointIP), hcp.Spec.InfraID); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeRecords deletes records of ours.
func (c *Consumer) removeRecords(ctx context.Context, group string, list []record, infraID string) error {
	for _, r := range list {
		out, err := c.records.Get(ctx, group, r.zone, armprivatedns.RecordTypeA, r.name, nil)
		if err == nil && out.Properties != nil && value(out.Properties.Metadata[recordOwner]) == infraID {
			_, err = c.records.Delete(ctx, group, r.zone, armprivatedns.RecordTypeA, r.name, &armprivatedns.RecordSetsClientDeleteOptions{IfMatch: out.Etag})
		}
		if err != nil && !gone(err) {
			return told("failed to delete the record of "+r.name+"."+r.zone, err)
		}
	}
	return nil
}

// removeLink deletes a link.
func (c *Consumer) removeLink(ctx context.Context, group, zone, link string) error {
	poller, err := c.links.BeginDelete(ctx, group, zone, link, nil)
	if _, err = settle(ctx, "The deletion of link "+link, poller, err); gone(err) {
		return nil
	}
	return told("failed to delete link "+link+" of private zone "+zone, err)
}

// removeZone deletes a zone that was made here, as its tags tell, and leaves others alone.
func (c *Consumer) removeZone(ctx context.Context, group, zone string, made func(tags map[string]*string) bool) error {
	out, err := c.zones.Get(ctx, group, zone, nil)
	if err == nil && made(out.Tags) {
		poller, begun := c.zones.BeginDelete(ctx, group, zone, nil)
		_, err = settle(ctx, "The deletion of private zone "+zone, poller, begun)
	}
	if gone(err) {
		return nil
	}
	return told("failed to delete private zone "+zone, err)
}

// removeLocal removes the zone of the names that machines use.
func (c *Consumer) removeLocal(ctx context.Context, obj *hyperv1.AzurePrivateLinkService, hcp *hyperv1.HostedControlPlane) error {
	group, zone, list := obj.Spec.ResourceGroupName, localZone(hcp), localRecords(hcp, obj.Name)
	if len(list) == 0 {
		return nil
	}
	if err := c.removeRecords(ctx, group, list, hcp.Spec.InfraID); err != nil {
		return err
	}
	if err := c.removeLink(ctx, group, zone, obj.Name+localLink); err != nil {
		return err
	}
	return c.removeZone(ctx, group, zone, func(tags map[string]*string) bool { return ours(tags, hcp) })
}

// removeBase removes names from the zone of the base domain. Link and zone stay while names of others are in it: they may be of another hosted cluster in
// the same virtual network.
func (c *Consumer) removeBase(ctx context.Context, obj *hyperv1.AzurePrivateLinkService, hcp *hyperv1.HostedControlPlane) error {
	group, zone := obj.Spec.ResourceGroupName, string(obj.Spec.BaseDomain)
	if zone == "" {
		return nil
	}
	if err := c.removeRecords(ctx, group, baseRecords(hcp, obj), hcp.Spec.InfraID); err != nil {
		return err
	}
	pager := c.records.NewListPager(group, zone, nil)
	for range maxPages {
		if !pager.More() {
			break
		}
		page, err := pager.NextPage(ctx)
		if gone(err) {
			return nil
		} else if err != nil {
			return told("failed to list the records of private zone "+zone, err)
		}
		for _, r := range page.Value {
			if !strings.HasSuffix(value(r.Type), "/SOA") {
				return nil
			}
		}
	}
	// Nobody uses them any more, whichever hosted cluster made them.
	links, err := c.linksOf(ctx, group, zone)
	if err != nil {
		return err
	}
	for _, l := range links {
		if value(l.Tags[typeTag]) != typeZone {
			return nil // somebody else's, who wants the zone
		}
		if err := c.removeLink(ctx, group, zone, value(l.Name)); err != nil {
			return err
		}
	}
	return c.removeZone(ctx, group, zone, func(tags map[string]*string) bool { return value(tags[typeTag]) == typeZone })
}
