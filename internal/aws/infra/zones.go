package infra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"

	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/tags"
)

func equalFold(a, b string) bool { return strings.EqualFold(a, b) }

// maxPages bounds a listing; a page of Route53 has a hundred zones or records.
const maxPages = 1000

// negativeTTL is how long resolvers may believe that a name isn't there, in seconds: names come while the cluster is made.
const negativeTTL = "60"

// hostedZones lists an account's zones of a domain.
func hostedZones(ctx context.Context, client *route53.Client, domain string, private bool) ([]types.HostedZone, error) {
	var list []types.HostedZone
	var marker *string
	for range maxPages {
		out, err := client.ListHostedZones(ctx, &route53.ListHostedZonesInput{Marker: marker})
		if err != nil {
			return nil, fmt.Errorf("listing hosted zones: %w", err)
		}
		for _, zone := range out.HostedZones {
			isPrivate := zone.Config != nil && zone.Config.PrivateZone
			if isPrivate == private && equalFold(strings.TrimSuffix(aws.ToString(zone.Name), "."), domain) {
				list = append(list, zone)
			}
		}
		if !out.IsTruncated {
			return list, nil
		}
		marker = out.NextMarker
	}
	return nil, errors.New("listing hosted zones: the list has no end")
}

// zoneID is an identifier without the path that the API puts before it.
func zoneID(zone types.HostedZone) string {
	return strings.TrimPrefix(aws.ToString(zone.Id), "/hostedzone/")
}

// publicZone is the account's for the base domain; it is never made.
func (r *run) publicZone(ctx context.Context) (string, error) {
	list, err := hostedZones(ctx, r.a.Cluster.route53, r.o.BaseDomain, false)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", fmt.Errorf("hosted zone %s not found: --base-domain must be the domain of a public hosted zone of the account", r.o.BaseDomain)
	}
	return zoneID(list[0]), nil
}

func (r *run) privateDomains() [2]string {
	return [2]string{ClusterDomain(r.o.Name, r.o.BaseDomainPrefix, r.o.BaseDomain), localDomain(r.o.Name)}
}

// zonesFree refuses private zones that are another cluster's, before anything is made.
func (r *run) zonesFree(ctx context.Context) error {
	vpc, err := r.findVPC(ctx, r.net)
	if err != nil {
		return fmt.Errorf("looking for the VPC: %w", err)
	}
	id := ""
	if vpc != nil {
		id = aws.ToString(vpc.VpcId)
	}
	for _, domain := range r.privateDomains() {
		if _, err := r.findPrivateZone(ctx, domain, id); err != nil {
			return err
		}
	}
	return nil
}

// findPrivateZone gives the cluster's zone: one with its tag, or one on its VPC, which an interrupted run left untagged.
func (r *run) findPrivateZone(ctx context.Context, domain, vpc string) (*types.HostedZone, error) {
	client := r.a.zones(r.o.PrivateZonesInClusterAccount).route53
	list, err := hostedZones(ctx, client, domain, true)
	if err != nil {
		return nil, err
	}
	ours := []string{vpc}
	if r.foreignZones() && len(list) > 0 {
		// One that an interrupted run left untagged is on the stand-in VPC until it is moved.
		standIn, err := r.findVPC(ctx, r.a.Cluster.ec2)
		if err != nil {
			return nil, fmt.Errorf("looking for the stand-in VPC: %w", err)
		}
		if standIn != nil {
			ours = append(ours, aws.ToString(standIn.VpcId))
		}
	}
	for i, zone := range list {
		have, err := zoneTags(ctx, client, zoneID(zone))
		if err != nil && !fault.Denied(err) {
			return nil, err
		}
		if have[tags.Cluster(r.o.InfraID)] == tags.Owned {
			return &list[i], nil
		}
		on, err := r.zoneVPCs(ctx, zoneID(zone))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ours, func(id string) bool { return id != "" && on[id] }) {
			return &list[i], nil
		}
	}
	if len(list) > 0 {
		return nil, fmt.Errorf("private zone %s (%s) is there and isn't this cluster's: delete it, or choose another --name or --base-domain-prefix",
			domain, zoneID(list[0]))
	}
	return nil, nil
}

func zoneTags(ctx context.Context, client *route53.Client, id string) (tags.Set, error) {
	out, err := client.ListTagsForResource(ctx, &route53.ListTagsForResourceInput{ResourceType: types.TagResourceTypeHostedzone, ResourceId: &id})
	if err != nil {
		return nil, err
	}
	set := tags.Set{}
	if out.ResourceTagSet != nil {
		for _, tag := range out.ResourceTagSet.Tags {
			set[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
		}
	}
	return set, nil
}

// zoneVPCs are the VPCs of a private zone.
func (r *run) zoneVPCs(ctx context.Context, id string) (map[string]bool, error) {
	out, err := r.a.zones(r.o.PrivateZonesInClusterAccount).route53.GetHostedZone(ctx, &route53.GetHostedZoneInput{Id: &id})
	if err != nil {
		return nil, fmt.Errorf("reading hosted zone %s: %w", id, err)
	}
	set := map[string]bool{}
	for _, vpc := range out.VPCs {
		set[aws.ToString(vpc.VPCId)] = true
	}
	return set, nil
}

func (r *run) privateZones(ctx context.Context) error {
	domains := r.privateDomains()
	for i, into := range []*string{&r.output.PrivateZoneID, &r.output.LocalZoneID} {
		id, err := r.privateZone(ctx, domains[i])
		if err != nil {
			return err
		}
		*into = id
	}
	if r.foreignZones() {
		return r.removeStandIn(ctx)
	}
	return nil
}

// foreignZones says that private zones are in another account than the VPC.
func (r *run) foreignZones() bool { return r.a.Owner != nil && r.o.PrivateZonesInClusterAccount }

func (r *run) privateZone(ctx context.Context, domain string) (string, error) {
	client := r.a.zones(r.o.PrivateZonesInClusterAccount).route53
	zone, err := ensure(ctx, r, "private zone "+domain, func() (*types.HostedZone, error) {
		return r.findPrivateZone(ctx, domain, r.output.VPCID)
	}, func() (*types.HostedZone, error) {
		vpc := r.output.VPCID
		if r.foreignZones() {
			// A zone can't be made on another account's VPC, only be associated with it later.
			standIn, err := r.ensureVPC(ctx, r.a.Cluster.ec2, "stand-in VPC")
			if err != nil {
				return nil, err
			}
			vpc = aws.ToString(standIn.VpcId)
		}
		out, err := client.CreateHostedZone(ctx, &route53.CreateHostedZoneInput{
			// Of this attempt alone: AWS refuses one that was ever used.
			CallerReference:  aws.String(fmt.Sprintf("%s-%s-%d", r.o.InfraID, domain, time.Now().UnixNano())),
			Name:             &domain,
			HostedZoneConfig: &types.HostedZoneConfig{PrivateZone: true, Comment: aws.String("of hosted cluster " + r.o.InfraID)},
			VPC:              &types.VPC{VPCId: &vpc, VPCRegion: types.VPCRegion(r.o.Region)},
		})
		if err != nil {
			return nil, err
		}
		return out.HostedZone, nil
	}, "HostedZoneAlreadyExists", "InvalidVPCId")
	if err != nil {
		return "", err
	}
	id := zoneID(*zone)
	have, err := zoneTags(ctx, client, id)
	if err != nil && !fault.Denied(err) {
		return "", fmt.Errorf("reading tags of private zone %s: %w", domain, err)
	}
	if missing := tags.Missing(have, r.tags); len(missing) > 0 {
		if _, err := client.ChangeTagsForResource(ctx, &route53.ChangeTagsForResourceInput{
			ResourceType: types.TagResourceTypeHostedzone, ResourceId: &id,
			AddTags: tags.List(missing, func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }),
		}); err != nil {
			return "", fmt.Errorf("tagging private zone %s: %w", domain, err)
		}
	}
	if r.foreignZones() {
		if err := r.moveZone(ctx, id); err != nil {
			return "", err
		}
	}
	return id, r.shortenNegativeTTL(ctx, client, id, domain)
}

// moveZone takes a zone of the cluster's account from the stand-in VPC to that of the other account.
func (r *run) moveZone(ctx context.Context, id string) error {
	on, err := r.zoneVPCs(ctx, id)
	if err != nil {
		return err
	}
	vpc := &types.VPC{VPCId: &r.output.VPCID, VPCRegion: types.VPCRegion(r.o.Region)}
	if !on[r.output.VPCID] {
		if _, err := r.a.Cluster.route53.CreateVPCAssociationAuthorization(ctx, &route53.CreateVPCAssociationAuthorizationInput{HostedZoneId: &id, VPC: vpc}); err != nil {
			return fmt.Errorf("letting the VPC's account use zone %s: %w", id, err)
		}
		if _, err := r.a.Owner.route53.AssociateVPCWithHostedZone(ctx, &route53.AssociateVPCWithHostedZoneInput{HostedZoneId: &id, VPC: vpc}); err != nil {
			return fmt.Errorf("using zone %s in the VPC: %w", id, err)
		}
	}
	for other := range on {
		if other == r.output.VPCID {
			continue
		}
		if _, err := r.a.Cluster.route53.DisassociateVPCFromHostedZone(ctx, &route53.DisassociateVPCFromHostedZoneInput{
			HostedZoneId: &id, VPC: &types.VPC{VPCId: aws.String(other), VPCRegion: types.VPCRegion(r.o.Region)}}); err != nil {
			return fmt.Errorf("taking zone %s off the stand-in VPC: %w", id, err)
		}
	}
	return nil
}

// removeStandIn deletes the VPC on which zones were made. That it stays for a while does no harm, and destroy removes it, too.
func (r *run) removeStandIn(ctx context.Context) error {
	vpc, err := r.findVPC(ctx, r.a.Cluster.ec2)
	if err != nil || vpc == nil {
		return err
	}
	if _, err := r.a.Cluster.ec2.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: vpc.VpcId}); err != nil && !fault.Gone(err) {
		r.Log("the stand-in VPC %s is left: %s", aws.ToString(vpc.VpcId), fault.Explain(err))
	}
	return nil
}

// shortenNegativeTTL changes the last field of a zone's SOA record.
func (r *run) shortenNegativeTTL(ctx context.Context, client *route53.Client, id, domain string) error {
	out, err := client.ListResourceRecordSets(ctx, &route53.ListResourceRecordSetsInput{
		HostedZoneId: &id, StartRecordName: &domain, StartRecordType: types.RRTypeSoa, MaxItems: aws.Int32(1)})
	if err != nil {
		return fmt.Errorf("reading the SOA record of %s: %w", domain, err)
	}
	set := first(out.ResourceRecordSets)
	if set == nil || set.Type != types.RRTypeSoa || len(set.ResourceRecords) != 1 {
		return fmt.Errorf("zone %s has no SOA record: run the command again", domain)
	}
	fields := strings.Fields(aws.ToString(set.ResourceRecords[0].Value))
	if len(fields) != 7 {
		r.Log("the SOA record of %s can't be read and stays as it is", domain)
		return nil
	}
	if fields[6] == negativeTTL {
		return nil
	}
	fields[6] = negativeTTL
	set.ResourceRecords = []types.ResourceRecord{{Value: aws.String(strings.Join(fields, " "))}}
	if _, err := client.ChangeResourceRecordSets(ctx, &route53.ChangeResourceRecordSetsInput{
		HostedZoneId: &id, ChangeBatch: &types.ChangeBatch{Changes: []types.Change{{Action: types.ChangeActionUpsert, ResourceRecordSet: set}}}}); err != nil {
		return fmt.Errorf("changing the SOA record of %s: %w", domain, err)
	}
	return nil
}
