package infra

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/ram"
	"github.com/aws/smithy-go"

	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
)

// unsuccessful is the first error of an answer that has one for each item; that an item is gone is none.
func unsuccessful(items []types.UnsuccessfulItem) error {
	for _, item := range items {
		if item.Error == nil {
			continue
		}
		err := &smithy.GenericAPIError{Code: aws.ToString(item.Error.Code), Message: aws.ToString(item.Error.Message)}
		if !fault.Gone(err) {
			return err
		}
	}
	return nil
}

func (w *wreck) vpcs(ctx context.Context) {
	clients := []*ec2.Client{w.net}
	if w.a.Owner != nil {
		clients = append(clients, w.a.Cluster.ec2) // the stand-in on which zones were made
	}
	for _, client := range clients {
		w.try("VPCs", pages(func(token *string) (*string, error) {
			out, err := client.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: ec2values.Owned(w.o.InfraID), NextToken: token})
			if err != nil {
				return nil, err
			}
			for _, vpc := range out.Vpcs {
				w.vpc(ctx, client, aws.ToString(vpc.VpcId))
			}
			return out.NextToken, nil
		}))
	}
}

// vpc empties and deletes one. What is in it is the cluster's, whoever made it.
func (w *wreck) vpc(ctx context.Context, client *ec2.Client, id string) {
	before := len(w.errs)
	w.classicLoadBalancers(ctx, id)
	w.loadBalancers(ctx, id)
	if w.a.Owner != nil {
		w.securityGroups(ctx, w.a.Cluster.ec2, id)
		w.shares(ctx)
	}
	w.endpoints(ctx, client, id)
	w.privateZones(ctx, id)
	w.routeTables(ctx, client, id)
	w.natGateways(ctx, client, id)
	if len(w.errs) > before {
		return
	}
	w.securityGroups(ctx, client, id)
	w.subnets(ctx, client, id)
	if len(w.errs) > before {
		return
	}
	_, err := client.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: &id})
	w.deleted("VPC "+id, err)
}

// accounts are those in which load balancers may be.
func (w *wreck) accounts() []*Account {
	if w.a.Owner == nil {
		return []*Account{w.a.Cluster}
	}
	return []*Account{w.a.Cluster, w.a.Owner}
}

func (w *wreck) classicLoadBalancers(ctx context.Context, vpc string) {
	for _, account := range w.accounts() {
		w.try("classic load balancers", pages(func(marker *string) (*string, error) {
			out, err := account.elb.DescribeLoadBalancers(ctx, &elasticloadbalancing.DescribeLoadBalancersInput{Marker: marker})
			if err != nil {
				return nil, err
			}
			for _, lb := range out.LoadBalancerDescriptions {
				if aws.ToString(lb.VPCId) == vpc {
					_, err := account.elb.DeleteLoadBalancer(ctx, &elasticloadbalancing.DeleteLoadBalancerInput{LoadBalancerName: lb.LoadBalancerName})
					w.deleted("load balancer "+aws.ToString(lb.LoadBalancerName), err)
				}
			}
			return out.NextMarker, nil
		}))
	}
}

func (w *wreck) loadBalancers(ctx context.Context, vpc string) {
	for _, account := range w.accounts() {
		w.try("load balancers", pages(func(marker *string) (*string, error) {
			out, err := account.elbv2.DescribeLoadBalancers(ctx, &elasticloadbalancingv2.DescribeLoadBalancersInput{Marker: marker})
			if err != nil {
				return nil, err
			}
			for _, lb := range out.LoadBalancers {
				if aws.ToString(lb.VpcId) == vpc {
					_, err := account.elbv2.DeleteLoadBalancer(ctx, &elasticloadbalancingv2.DeleteLoadBalancerInput{LoadBalancerArn: lb.LoadBalancerArn})
					w.deleted("load balancer "+aws.ToString(lb.LoadBalancerName), err)
				}
			}
			return out.NextMarker, nil
		}))
		w.try("target groups", pages(func(marker *string) (*string, error) {
			out, err := account.elbv2.DescribeTargetGroups(ctx, &elasticloadbalancingv2.DescribeTargetGroupsInput{Marker: marker})
			if err != nil {
				return nil, err
			}
			for _, group := range out.TargetGroups {
				if aws.ToString(group.VpcId) == vpc {
					_, err := account.elbv2.DeleteTargetGroup(ctx, &elasticloadbalancingv2.DeleteTargetGroupInput{TargetGroupArn: group.TargetGroupArn})
					w.deleted("target group "+aws.ToString(group.TargetGroupName), err)
				}
			}
			return out.NextMarker, nil
		}))
	}
}

func (w *wreck) shares(ctx context.Context) {
	list, err := shares(ctx, w.a.Owner, w.o.InfraID)
	w.try("resource shares", err)
	for _, share := range list {
		_, err := w.a.Owner.ram.DeleteResourceShare(ctx, &ram.DeleteResourceShareInput{ResourceShareArn: share.ResourceShareArn})
		w.deleted("resource share "+aws.ToString(share.Name), err)
	}
}

func inVPC(id string) []types.Filter { return []types.Filter{ec2values.Filter("vpc-id", id)} }

func (w *wreck) endpoints(ctx context.Context, client *ec2.Client, vpc string) {
	w.try("VPC endpoints", pages(func(token *string) (*string, error) {
		out, err := client.DescribeVpcEndpoints(ctx, &ec2.DescribeVpcEndpointsInput{Filters: inVPC(vpc), NextToken: token})
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, endpoint := range out.VpcEndpoints {
			if !endpointEnded(endpoint.State) || equalFold(string(endpoint.State), "rejected") || equalFold(string(endpoint.State), "failed") {
				ids = append(ids, aws.ToString(endpoint.VpcEndpointId))
			}
		}
		if len(ids) > 0 {
			deleted, err := client.DeleteVpcEndpoints(ctx, &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: ids})
			if err != nil {
				return nil, err
			}
			if err := unsuccessful(deleted.Unsuccessful); err != nil {
				return nil, err
			}
			w.Log("VPC endpoints %v deleted", ids)
		}
		return out.NextToken, nil
	}))
}

func (w *wreck) routeTables(ctx context.Context, client *ec2.Client, vpc string) {
	w.try("route tables", pages(func(token *string) (*string, error) {
		out, err := client.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: inVPC(vpc), NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, table := range out.RouteTables {
			w.routeTable(ctx, client, table)
		}
		return out.NextToken, nil
	}))
}

func (w *wreck) routeTable(ctx context.Context, client *ec2.Client, table types.RouteTable) {
	id := aws.ToString(table.RouteTableId)
	free, main := true, false
	for _, route := range table.Routes {
		if route.Origin == types.RouteOriginCreateRoute {
			_, err := client.DeleteRoute(ctx, &ec2.DeleteRouteInput{RouteTableId: &id, DestinationCidrBlock: route.DestinationCidrBlock,
				DestinationIpv6CidrBlock: route.DestinationIpv6CidrBlock, DestinationPrefixListId: route.DestinationPrefixListId})
			free = w.try("route of table "+id, err) && free
		}
	}
	for _, association := range table.Associations {
		if aws.ToBool(association.Main) {
			main = true
			continue
		}
		_, err := client.DisassociateRouteTable(ctx, &ec2.DisassociateRouteTableInput{AssociationId: association.RouteTableAssociationId})
		free = w.try("route table "+id, err) && free
	}
	// The main one goes with the VPC.
	if free && !main {
		_, err := client.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: &id})
		w.deleted("route table "+id, err)
	}
}

// errStill is why something that AWS takes its time to remove is in the way.
var errStill = errors.New("is being deleted")

func (w *wreck) natGateways(ctx context.Context, client *ec2.Client, vpc string) {
	w.try("NAT gateways", pages(func(token *string) (*string, error) {
		out, err := client.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{Filter: inVPC(vpc), NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, gateway := range out.NatGateways {
			id := aws.ToString(gateway.NatGatewayId)
			if gateway.State == types.NatGatewayStateDeleted {
				continue
			}
			if gateway.State != types.NatGatewayStateDeleting {
				_, err := client.DeleteNatGateway(ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: &id})
				if !w.try("NAT gateway "+id, err) {
					continue
				}
			}
			// It holds its address and its subnet until it is gone.
			w.try("NAT gateway "+id, errStill)
		}
		return out.NextToken, nil
	}))
}

// securityGroups takes the rules off all of them before it deletes any: they may name each other.
func (w *wreck) securityGroups(ctx context.Context, client *ec2.Client, vpc string) {
	var groups []types.SecurityGroup
	if !w.try("security groups", pages(func(token *string) (*string, error) {
		out, err := client.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: inVPC(vpc), NextToken: token})
		if err != nil {
			return nil, err
		}
		groups = append(groups, out.SecurityGroups...)
		return out.NextToken, nil
	})) {
		return
	}
	var free []types.SecurityGroup
	for _, group := range groups {
		if w.try("security group "+aws.ToString(group.GroupId), w.revoke(ctx, client, group)) {
			free = append(free, group)
		}
	}
	for _, group := range slices.DeleteFunc(free, func(g types.SecurityGroup) bool { return aws.ToString(g.GroupName) == "default" }) {
		_, err := client.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: group.GroupId})
		w.deleted("security group "+aws.ToString(group.GroupId), err)
	}
}

func (w *wreck) revoke(ctx context.Context, client *ec2.Client, group types.SecurityGroup) error {
	var errs []error
	if len(group.IpPermissions) > 0 {
		_, err := client.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: group.GroupId, IpPermissions: group.IpPermissions})
		errs = append(errs, err)
	}
	if len(group.IpPermissionsEgress) > 0 {
		_, err := client.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{GroupId: group.GroupId, IpPermissions: group.IpPermissionsEgress})
		errs = append(errs, err)
	}
	for _, err := range errs {
		if err != nil && !fault.Gone(err) {
			return err
		}
	}
	return nil
}

func (w *wreck) subnets(ctx context.Context, client *ec2.Client, vpc string) {
	w.try("subnets", pages(func(token *string) (*string, error) {
		out, err := client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: inVPC(vpc), NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, subnet := range out.Subnets {
			_, err := client.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: subnet.SubnetId})
			w.deleted("subnet "+aws.ToString(subnet.SubnetId), err)
		}
		return out.NextToken, nil
	}))
}
