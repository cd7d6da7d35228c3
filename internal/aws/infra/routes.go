package infra

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/tags"
)

const everywhere = "0.0.0.0/0"

// endedNAT are states of gateways that are no use any more; AWS lists them for an hour.
var endedNAT = []types.NatGatewayState{types.NatGatewayStateDeleted, types.NatGatewayStateDeleting, types.NatGatewayStateFailed}

// natGateway is a zone's; it isn't waited for.
func (r *run) natGateway(ctx context.Context, zone, subnet string) (string, error) {
	name := r.o.InfraID + "-nat-" + zone
	gateway, err := ensure(ctx, r, "NAT gateway "+name, func() (*types.NatGateway, error) {
		out, err := r.net.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{Filter: r.named(name)})
		if err != nil {
			return nil, err
		}
		return first(slices.DeleteFunc(out.NatGateways, func(n types.NatGateway) bool {
			// The name once more: an endpoint of one's own may heed only one of two filters.
			return slices.Contains(endedNAT, n.State) || ec2values.Set(n.Tags)[tags.Name] != name
		})), nil
	}, func() (*types.NatGateway, error) {
		address, err := r.address(ctx, r.o.InfraID+"-eip-"+zone)
		if err != nil {
			return nil, err
		}
		out, err := r.net.CreateNatGateway(ctx, &ec2.CreateNatGatewayInput{
			AllocationId: &address, SubnetId: &subnet, TagSpecifications: r.tagged(types.ResourceTypeNatgateway, tags.Name, name),
		}, once)
		if err != nil {
			return nil, err
		}
		return out.NatGateway, nil
	}, "InvalidSubnet", "InvalidElasticIpID.NotFound", "InvalidSubnetID.NotFound", "InvalidAllocationID.NotFound")
	if err != nil {
		return "", err
	}
	return aws.ToString(gateway.NatGatewayId), nil
}

// address is a public one that nothing uses: that of a run that ended before its gateway was made, or a new one.
func (r *run) address(ctx context.Context, name string) (string, error) {
	address, err := ensure(ctx, r, "address "+name, func() (*types.Address, error) {
		out, err := r.net.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{Filters: r.named(name)})
		if err != nil {
			return nil, err
		}
		return first(slices.DeleteFunc(out.Addresses, func(a types.Address) bool { return aws.ToString(a.AssociationId) != "" })), nil
	}, func() (*types.Address, error) {
		out, err := r.net.AllocateAddress(ctx, &ec2.AllocateAddressInput{
			Domain: types.DomainTypeVpc, TagSpecifications: r.tagged(types.ResourceTypeElasticIp, tags.Name, name)}, once)
		if err != nil {
			return nil, err
		}
		return &types.Address{AllocationId: out.AllocationId}, nil
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(address.AllocationId), nil
}

func (r *run) routeTable(ctx context.Context, name string) (*types.RouteTable, error) {
	return ensure(ctx, r, "route table "+name, func() (*types.RouteTable, error) {
		out, err := r.net.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: r.named(name)})
		if err != nil {
			return nil, err
		}
		return first(out.RouteTables), nil
	}, func() (*types.RouteTable, error) {
		out, err := r.net.CreateRouteTable(ctx, &ec2.CreateRouteTableInput{
			VpcId: &r.output.VPCID, TagSpecifications: r.tagged(types.ResourceTypeRouteTable, tags.Name, name)}, once)
		if err != nil {
			return nil, err
		}
		return out.RouteTable, nil
	}, "InvalidVpcID.NotFound")
}

// privateTable leads a zone's private subnet through a NAT gateway, or nowhere when there is none.
func (r *run) privateTable(ctx context.Context, zone, subnet, nat string) (string, error) {
	table, err := r.routeTable(ctx, r.o.InfraID+"-private-"+zone)
	if err != nil {
		return "", err
	}
	if nat != "" {
		there := func(route types.Route) bool { return aws.ToString(route.NatGatewayId) == nat }
		if err := r.route(ctx, table, there, &ec2.CreateRouteInput{NatGatewayId: &nat}); err != nil {
			return "", err
		}
	}
	// Also with a proxy: a subnet without a table of its own would use the main one, which leads to the internet.
	return aws.ToString(table.RouteTableId), r.associate(ctx, table, subnet)
}

// publicTable leads public subnets, and all that have no table of their own, to the internet.
func (r *run) publicTable(ctx context.Context, gateway string, subnets []string) (string, error) {
	table, err := r.routeTable(ctx, r.o.InfraID+"-public")
	if err != nil {
		return "", err
	}
	if err := r.mainTable(ctx, aws.ToString(table.RouteTableId)); err != nil {
		return "", err
	}
	there := func(route types.Route) bool { return aws.ToString(route.GatewayId) == gateway }
	if err := r.route(ctx, table, there, &ec2.CreateRouteInput{GatewayId: &gateway}); err != nil {
		return "", err
	}
	for _, subnet := range subnets {
		if err := r.associate(ctx, table, subnet); err != nil {
			return "", err
		}
	}
	return aws.ToString(table.RouteTableId), nil
}

// mainTable makes a table the VPC's main one.
func (r *run) mainTable(ctx context.Context, id string) error {
	out, err := r.net.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{
		Filters: []types.Filter{ec2values.Filter("vpc-id", r.output.VPCID), ec2values.Filter("association.main", "true")}})
	if err != nil {
		return fmt.Errorf("looking for the main route table: %w", err)
	}
	table := first(out.RouteTables)
	if table == nil {
		return fmt.Errorf("VPC %s has no main route table: run the command again", r.output.VPCID)
	}
	if aws.ToString(table.RouteTableId) == id {
		return nil
	}
	for _, association := range table.Associations {
		if !aws.ToBool(association.Main) {
			continue
		}
		if _, err := r.net.ReplaceRouteTableAssociation(ctx, &ec2.ReplaceRouteTableAssociationInput{
			AssociationId: association.RouteTableAssociationId, RouteTableId: &id}); err != nil {
			return fmt.Errorf("making route table %s the main one: %w", id, err)
		}
	}
	return nil
}

// route makes a table's default route unless one that leads there exists.
func (r *run) route(ctx context.Context, table *types.RouteTable, there func(types.Route) bool, input *ec2.CreateRouteInput) error {
	input.RouteTableId, input.DestinationCidrBlock = table.RouteTableId, aws.String(everywhere)
	isDefault := func(route types.Route) bool { return aws.ToString(route.DestinationCidrBlock) == everywhere }
	_, err := ensure(ctx, r, "default route of "+aws.ToString(table.RouteTableId), func() (*types.Route, error) {
		for i, route := range table.Routes {
			if isDefault(route) && there(route) {
				return &table.Routes[i], nil
			}
		}
		return nil, nil
	}, func() (*types.Route, error) {
		if slices.ContainsFunc(table.Routes, isDefault) {
			// It leads to a gateway that is gone: somebody deleted that one.
			_, err := r.net.ReplaceRoute(ctx, &ec2.ReplaceRouteInput{RouteTableId: input.RouteTableId,
				DestinationCidrBlock: input.DestinationCidrBlock, NatGatewayId: input.NatGatewayId, GatewayId: input.GatewayId})
			return &types.Route{}, err
		}
		_, err := r.net.CreateRoute(ctx, input)
		return &types.Route{}, err
	}, "InvalidNatGatewayID.NotFound", "InvalidRouteTableID.NotFound", "InvalidGatewayID.NotFound")
	return err
}

// associate makes a subnet use a table.
func (r *run) associate(ctx context.Context, table *types.RouteTable, subnet string) error {
	for _, association := range table.Associations {
		if aws.ToString(association.SubnetId) == subnet {
			return nil
		}
	}
	if _, err := r.net.AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{RouteTableId: table.RouteTableId, SubnetId: &subnet}); err != nil {
		return fmt.Errorf("giving subnet %s its route table: %w", subnet, err)
	}
	return nil
}

// s3Endpoint keeps traffic to S3 within AWS.
func (r *run) s3Endpoint(ctx context.Context, tables []string) error {
	service := "com.amazonaws." + r.o.Region + ".s3"
	_, err := ensure(ctx, r, "endpoint of S3", func() (*types.VpcEndpoint, error) {
		out, err := r.net.DescribeVpcEndpoints(ctx, &ec2.DescribeVpcEndpointsInput{Filters: ec2values.Owned(r.o.InfraID)})
		if err != nil {
			return nil, err
		}
		return first(slices.DeleteFunc(out.VpcEndpoints, func(e types.VpcEndpoint) bool {
			return aws.ToString(e.ServiceName) != service || endpointEnded(e.State)
		})), nil
	}, func() (*types.VpcEndpoint, error) {
		out, err := r.net.CreateVpcEndpoint(ctx, &ec2.CreateVpcEndpointInput{
			VpcId: &r.output.VPCID, ServiceName: &service, RouteTableIds: tables, VpcEndpointType: types.VpcEndpointTypeGateway,
			TagSpecifications: r.tagged(types.ResourceTypeVpcEndpoint),
		}, once)
		if err != nil {
			return nil, err
		}
		return out.VpcEndpoint, nil
	}, "InvalidRouteTableId.NotFound")
	return err
}

// endpointEnded tells states of endpoints that are as good as gone; AWS lists some of them for a while.
func endpointEnded(state types.State) bool {
	return slices.ContainsFunc([]string{"deleted", "deleting", "rejected", "failed"}, func(s string) bool { return equalFold(string(state), s) })
}
