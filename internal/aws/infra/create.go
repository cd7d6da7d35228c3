package infra

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/aws/tags"
)

// Create makes what isn't there and describes all of it. Errors are in words for people; what was made until then stays, and the next
// run goes on from there.
func Create(ctx context.Context, o Options, a Accounts, s Surroundings) (*Output, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &run{Surroundings: s.filled(), o: o, a: a, net: a.network().ec2, tags: tags.Of(o.InfraID, o.Name, o.AdditionalTags)}
	if err := r.create(ctx); err != nil {
		return nil, explain(err)
	}
	return r.output, nil
}

// explain puts the SDK's part of an error into words and keeps what was said before it.
func explain(err error) error {
	words := fault.Explain(err)
	if words == err { //nolint:errorlint // because it is the same error that is asked for
		return err
	}
	return words
}

func (r *run) create(ctx context.Context) error {
	zones, err := r.zones(ctx)
	if err != nil {
		return err
	}
	plan, err := planSubnets(r.o.VPCCIDR, zones)
	if err != nil {
		return err
	}
	r.output = &Output{
		Region: r.o.Region, InfraID: r.o.InfraID, MachineCIDR: r.o.VPCCIDR, Name: r.o.Name, BaseDomain: r.o.BaseDomain,
		BaseDomainPrefix: r.o.BaseDomainPrefix, PublicOnly: r.o.PublicOnly,
	}
	// Looked up before anything is made: a domain that is wrong is the commonest mistake, and the network takes minutes.
	if r.output.PublicZoneID, err = r.publicZone(ctx); err != nil {
		return err
	}
	if err := r.zonesFree(ctx); err != nil {
		return err
	}
	made, err := r.network(ctx, plan)
	if err != nil {
		return err
	}
	if r.a.Owner != nil {
		if err := r.share(ctx, made); err != nil {
			return err
		}
	}
	if err := r.privateZones(ctx); err != nil {
		return err
	}
	if r.o.EnableProxy {
		return r.proxy(ctx, made)
	}
	return nil
}

// zones are those of the options, or the region's first.
func (r *run) zones(ctx context.Context) ([]string, error) {
	if len(r.o.Zones) > 0 {
		return r.o.Zones, nil
	}
	out, err := r.net.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
	if err != nil {
		return nil, fmt.Errorf("looking for availability zones: %w", err)
	}
	for _, zone := range out.AvailabilityZones {
		// Local zones and Wavelength zones have no NAT gateways.
		if zone.ZoneType == nil || aws.ToString(zone.ZoneType) == "availability-zone" {
			return []string{aws.ToString(zone.ZoneName)}, nil
		}
	}
	return nil, fmt.Errorf("--region %s: has no availability zones; name them with --zones", r.o.Region)
}

// parts are what later steps need of the network.
type parts struct {
	private, public []string // subnets, in the order of zones
	tables          []string // route tables
}

func (r *run) network(ctx context.Context, plan []subnets) (*parts, error) {
	vpc, err := r.vpc(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.dhcp(ctx, vpc); err != nil {
		return nil, err
	}
	gateway, err := r.internetGateway(ctx)
	if err != nil {
		return nil, err
	}
	made := &parts{}
	var nat string
	for i, zone := range plan {
		var public string
		if !r.o.PublicOnly {
			private, err := r.subnet(ctx, "private", zone.zone, zone.private)
			if err != nil {
				return nil, err
			}
			made.private = append(made.private, private)
			r.output.Zones = append(r.output.Zones, Zone{Name: zone.zone, SubnetID: private})
		}
		if public, err = r.subnet(ctx, "public", zone.zone, zone.public); err != nil {
			return nil, err
		}
		made.public = append(made.public, public)
		if r.o.PublicOnly {
			r.output.Zones = append(r.output.Zones, Zone{Name: zone.zone, SubnetID: public})
			continue
		}
		if !r.o.EnableProxy && (i == 0 || !r.o.SingleNATGateway) {
			if nat, err = r.natGateway(ctx, zone.zone, public); err != nil {
				return nil, err
			}
		}
		table, err := r.privateTable(ctx, zone.zone, made.private[i], nat)
		if err != nil {
			return nil, err
		}
		made.tables = append(made.tables, table)
	}
	table, err := r.publicTable(ctx, gateway, made.public)
	if err != nil {
		return nil, err
	}
	made.tables = append(made.tables, table)
	return made, r.s3Endpoint(ctx, made.tables)
}

func (r *run) findVPC(ctx context.Context, client *ec2.Client) (*types.Vpc, error) {
	out, err := client.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: r.named(vpcName(r.o.InfraID))})
	if err != nil {
		return nil, err
	}
	return first(out.Vpcs), nil
}

func vpcName(infraID string) string { return infraID + "-vpc" }

func (r *run) ensureVPC(ctx context.Context, client *ec2.Client, what string) (*types.Vpc, error) {
	name := vpcName(r.o.InfraID)
	return ensure(ctx, r, what+" "+name, func() (*types.Vpc, error) { return r.findVPC(ctx, client) }, func() (*types.Vpc, error) {
		out, err := client.CreateVpc(ctx, &ec2.CreateVpcInput{
			CidrBlock: &r.o.VPCCIDR, TagSpecifications: r.tagged(types.ResourceTypeVpc, tags.Name, name),
		}, once)
		if err != nil {
			return nil, err
		}
		return out.Vpc, nil
	})
}

func (r *run) vpc(ctx context.Context) (*types.Vpc, error) {
	vpc, err := r.ensureVPC(ctx, r.net, "VPC")
	if err != nil {
		return nil, err
	}
	if got := aws.ToString(vpc.CidrBlock); got != r.o.VPCCIDR {
		return nil, fmt.Errorf("--vpc-cidr %s: VPC %s of this cluster has %s; give that, or destroy the infrastructure first", r.o.VPCCIDR, aws.ToString(vpc.VpcId), got)
	}
	r.output.VPCID = aws.ToString(vpc.VpcId)
	for _, attribute := range []types.VpcAttributeName{types.VpcAttributeNameEnableDnsSupport, types.VpcAttributeNameEnableDnsHostnames} {
		if err := r.vpcDNS(ctx, attribute); err != nil {
			return nil, err
		}
	}
	return vpc, nil
}

// vpcDNS switches on what private zones need. AWS takes one attribute a call.
func (r *run) vpcDNS(ctx context.Context, attribute types.VpcAttributeName) error {
	out, err := r.net.DescribeVpcAttribute(ctx, &ec2.DescribeVpcAttributeInput{VpcId: &r.output.VPCID, Attribute: attribute})
	// The role that the published tool makes may change the attribute without reading it.
	if err != nil && !fault.Denied(err) {
		return fmt.Errorf("reading attributes of VPC %s: %w", r.output.VPCID, err)
	}
	input := &ec2.ModifyVpcAttributeInput{VpcId: &r.output.VPCID}
	yes := &types.AttributeBooleanValue{Value: aws.Bool(true)}
	var set *types.AttributeBooleanValue
	if out == nil {
		out = &ec2.DescribeVpcAttributeOutput{}
	}
	if attribute == types.VpcAttributeNameEnableDnsSupport {
		set, input.EnableDnsSupport = out.EnableDnsSupport, yes
	} else {
		set, input.EnableDnsHostnames = out.EnableDnsHostnames, yes
	}
	if set != nil && aws.ToBool(set.Value) {
		return nil
	}
	if _, err := r.net.ModifyVpcAttribute(ctx, input); err != nil {
		return fmt.Errorf("switching on %s of VPC %s: %w", attribute, r.output.VPCID, err)
	}
	return nil
}

func (r *run) dhcp(ctx context.Context, vpc *types.Vpc) error {
	domain := r.o.Region + ".compute.internal"
	if r.o.Region == "us-east-1" {
		domain = "ec2.internal"
	}
	options, err := ensure(ctx, r, "DHCP options", func() (*types.DhcpOptions, error) {
		out, err := r.net.DescribeDhcpOptions(ctx, &ec2.DescribeDhcpOptionsInput{Filters: ec2values.Owned(r.o.InfraID)})
		if err != nil {
			return nil, err
		}
		return first(out.DhcpOptions), nil
	}, func() (*types.DhcpOptions, error) {
		out, err := r.net.CreateDhcpOptions(ctx, &ec2.CreateDhcpOptionsInput{
			DhcpConfigurations: []types.NewDhcpConfiguration{
				{Key: aws.String("domain-name"), Values: []string{domain}},
				{Key: aws.String("domain-name-servers"), Values: []string{"AmazonProvidedDNS"}},
			},
			TagSpecifications: r.tagged(types.ResourceTypeDhcpOptions),
		}, once)
		if err != nil {
			return nil, err
		}
		return out.DhcpOptions, nil
	})
	if err != nil || aws.ToString(vpc.DhcpOptionsId) == aws.ToString(options.DhcpOptionsId) {
		return err
	}
	if _, err := r.net.AssociateDhcpOptions(ctx, &ec2.AssociateDhcpOptionsInput{DhcpOptionsId: options.DhcpOptionsId, VpcId: vpc.VpcId}); err != nil {
		return fmt.Errorf("giving VPC %s its DHCP options: %w", r.output.VPCID, err)
	}
	return nil
}

func (r *run) internetGateway(ctx context.Context) (string, error) {
	name := r.o.InfraID + "-igw"
	gateway, err := ensure(ctx, r, "internet gateway "+name, func() (*types.InternetGateway, error) {
		out, err := r.net.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{Filters: r.named(name)})
		if err != nil {
			return nil, err
		}
		return first(out.InternetGateways), nil
	}, func() (*types.InternetGateway, error) {
		out, err := r.net.CreateInternetGateway(ctx, &ec2.CreateInternetGatewayInput{
			TagSpecifications: r.tagged(types.ResourceTypeInternetGateway, tags.Name, name)}, once)
		if err != nil {
			return nil, err
		}
		return out.InternetGateway, nil
	})
	if err != nil {
		return "", err
	}
	for _, attachment := range gateway.Attachments {
		if aws.ToString(attachment.VpcId) == r.output.VPCID {
			return aws.ToString(gateway.InternetGatewayId), nil
		}
	}
	_, err = r.net.AttachInternetGateway(ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: gateway.InternetGatewayId, VpcId: &r.output.VPCID})
	if err != nil && !fault.Is(err, "Resource.AlreadyAssociated") {
		return "", fmt.Errorf("attaching internet gateway %s: %w", name, err)
	}
	return aws.ToString(gateway.InternetGatewayId), nil
}

// subnet is a zone's private or public one.
func (r *run) subnet(ctx context.Context, kind, zone, cidr string) (string, error) {
	name := r.o.InfraID + "-" + kind + "-" + zone
	more := []string{tags.Name, name, tags.PublicLoadBalancers, "1"}
	if kind == "private" {
		more[2] = tags.InternalLoadBalancers
	}
	// Machines are in private subnets, or in public ones when there are no others.
	if kind == "private" || r.o.PublicOnly {
		more = append(more, tags.KarpenterDiscovery, r.o.InfraID)
	}
	made, err := ensure(ctx, r, "subnet "+name, func() (*types.Subnet, error) {
		out, err := r.net.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: r.named(name)})
		if err != nil {
			return nil, err
		}
		return first(out.Subnets), nil
	}, func() (*types.Subnet, error) {
		out, err := r.net.CreateSubnet(ctx, &ec2.CreateSubnetInput{
			AvailabilityZone: &zone, CidrBlock: &cidr, VpcId: &r.output.VPCID,
			TagSpecifications: r.tagged(types.ResourceTypeSubnet, more...),
		}, once)
		if err != nil {
			return nil, err
		}
		id := aws.ToString(out.Subnet.SubnetId)
		return out.Subnet, r.visible(ctx, "subnet "+id, visibleTries, visibleWait, func() (bool, error) {
			seen, err := r.net.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{id}})
			return err == nil && len(seen.Subnets) > 0, err
		})
	}, "InvalidVpcID.NotFound")
	if err != nil {
		return "", err
	}
	if got := aws.ToString(made.CidrBlock); got != cidr {
		return "", fmt.Errorf("--zones: subnet %s has %s instead of %s: give the zones in the order of the first run", name, got, cidr)
	}
	return aws.ToString(made.SubnetId), nil
}

// accounts are the identifiers of the cluster's account and of the VPC's.
func (r *run) accounts(ctx context.Context) error {
	var err error
	if _, r.output.ClusterAccountID, err = session.Caller(ctx, r.a.Cluster.config); err != nil {
		return fmt.Errorf("asking for the cluster's account: %w", err)
	}
	if _, r.output.VPCCreatorAccountID, err = session.Caller(ctx, r.a.Owner.config); err != nil {
		return fmt.Errorf("asking for the account of the VPC: %w", err)
	}
	return nil
}
