package privatelink

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/route53"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/aws/tags"
)

// Account says where a hosted cluster's VPC and private zone are. Without roles, both are in the account of the process's credentials.
type Account struct {
	Region string
	// VPCRole and ZoneRole are taken on for a VPC that another account shares.
	VPCRole, ZoneRole string
}

// Consumer calls AWS as a hosted cluster's control plane. As in Provider, its clients are no interfaces.
type Consumer struct {
	ec2     *ec2.Client
	route53 *route53.Client
}

// OpenConsumer makes one from the environment of the process. It makes no request.
func OpenConsumer(ctx context.Context, as Account) (*Consumer, error) {
	vpc, err := session.Load(ctx, session.Options{Agent: "control-plane-operator", Region: as.Region, RoleARN: as.VPCRole})
	if err != nil {
		return nil, err
	}
	zone, err := session.Load(ctx, session.Options{Agent: "control-plane-operator", Region: as.Region, RoleARN: as.ZoneRole})
	if err != nil {
		return nil, err
	}
	return &Consumer{ec2.NewFromConfig(vpc), session.Route53(zone)}, nil
}

// group finds the security group of an endpoint by its tags; nil: there is none.
func (c *Consumer) group(ctx context.Context, infraID, endpoint string) (*types.SecurityGroup, error) {
	out, err := c.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{
		Filters: ec2values.Owned(infraID, ec2values.Named(groupName(infraID, endpoint))),
	})
	if err != nil || len(out.SecurityGroups) == 0 {
		return nil, fault.Told("failed to look for the security group of the endpoint", err)
	}
	return &out.SecurityGroups[0], nil
}

// ensureGroup makes the security group and its rules, as far as they are missing, and gives its ID.
func (c *Consumer) ensureGroup(ctx context.Context, obj *hyperv1.AWSEndpointService, hcp *hyperv1.HostedControlPlane) (string, error) {
	infraID, name := hcp.Spec.InfraID, groupName(hcp.Spec.InfraID, obj.Name)
	group, err := c.group(ctx, infraID, obj.Name)
	if err != nil {
		return obj.Status.SecurityGroupID, err
	}
	if group == nil {
		_, err := c.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
			GroupName: &name, Description: aws.String("VPC endpoint security group"), VpcId: &hcp.Spec.Platform.AWS.CloudProviderConfig.VPC,
			TagSpecifications: ec2values.Tagged(types.ResourceTypeSecurityGroup, tagsOf(hcp, obj).With(tags.Name, name)),
		}, once)
		if err != nil {
			return "", fault.Told("failed to create security group "+name, err)
		}
		if group, err = c.group(ctx, infraID, obj.Name); err != nil {
			return "", err
		} else if group == nil {
			return "", waitFor("Security group %s is not seen yet", name)
		}
	}
	id := aws.ToString(group.GroupId)
	if missing := ingress(hcp, obj.Name, group.IpPermissions); len(missing) > 0 {
		_, err := c.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &id, IpPermissions: missing})
		if err != nil && !fault.Is(err, "InvalidPermission.Duplicate") {
			return id, fault.Told("failed to set ingress rules of security group "+id, err)
		}
	}
	return id, nil
}

// endpoint finds a VPC endpoint that is or will be; nil: there is none. One that nothing comes of any more is deleted first.
func (c *Consumer) endpoint(ctx context.Context, obj *hyperv1.AWSEndpointService, hcp *hyperv1.HostedControlPlane, wanted bool) (*types.VpcEndpoint, error) {
	in := &ec2.DescribeVpcEndpointsInput{}
	if obj.Status.EndpointID != "" {
		in.VpcEndpointIds = []string{obj.Status.EndpointID}
	} else {
		in.Filters = ec2values.Owned(hcp.Spec.InfraID, ec2values.Filter("tag:"+endpointTag, obj.Name))
	}
	out, err := c.ec2.DescribeVpcEndpoints(ctx, in)
	if err != nil && !fault.Gone(err) {
		return nil, fault.Told("failed to look for the VPC endpoint", err)
	}
	if err == nil {
		for i := range out.VpcEndpoints {
			e := &out.VpcEndpoints[i]
			if !gone(e.State) || !wanted && state(string(e.State)) != "deleted" {
				return e, nil
			}
			if mayBeDropped(e.State) {
				return nil, c.drop(ctx, aws.ToString(e.VpcEndpointId), "AWS has it "+state(string(e.State)))
			}
		}
	}
	if obj.Status.EndpointID == "" {
		return nil, nil
	}
	// The one that was noted is gone; another may have been made since, whose maker died before it noted that.
	obj.Status.EndpointID = ""
	return c.endpoint(ctx, obj, hcp, wanted)
}

// drop deletes an endpoint that another one is to take the place of.
func (c *Consumer) drop(ctx context.Context, id, why string) error {
	if err := c.deleteEndpoint(ctx, id); err != nil {
		return err
	}
	return waitFor("VPC endpoint %s is replaced: %s", id, why)
}

func (c *Consumer) deleteEndpoint(ctx context.Context, id string) error {
	out, err := c.ec2.DeleteVpcEndpoints(ctx, &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: []string{id}})
	if err == nil && len(out.Unsuccessful) > 0 && out.Unsuccessful[0].Error != nil {
		if code := aws.ToString(out.Unsuccessful[0].Error.Code); !fault.GoneCode(code) {
			return fault.Coded("failed to delete VPC endpoint "+id, code)
		}
	}
	if fault.Gone(err) {
		return nil
	}
	return fault.Told("failed to delete VPC endpoint "+id, err)
}

// ensureEndpoint makes the VPC endpoint, or changes what can be changed, and notes its ID.
func (c *Consumer) ensureEndpoint(ctx context.Context, obj *hyperv1.AWSEndpointService, hcp *hyperv1.HostedControlPlane) (*types.VpcEndpoint, error) {
	subnets, err := c.subnets(ctx, obj.Spec.SubnetIDs)
	if err != nil {
		return nil, err
	}
	e, err := c.endpoint(ctx, obj, hcp, true)
	if err != nil {
		return nil, err
	}
	if e != nil && aws.ToString(e.ServiceName) != obj.Status.EndpointServiceName {
		return nil, c.drop(ctx, aws.ToString(e.VpcEndpointId), "it leads to an endpoint service of before")
	}
	if e == nil {
		made, err := c.ec2.CreateVpcEndpoint(ctx, &ec2.CreateVpcEndpointInput{
			VpcEndpointType: types.VpcEndpointTypeInterface, VpcId: &hcp.Spec.Platform.AWS.CloudProviderConfig.VPC, ServiceName: &obj.Status.EndpointServiceName,
			SubnetIds: subnets, SecurityGroupIds: []string{obj.Status.SecurityGroupID},
			TagSpecifications: ec2values.Tagged(types.ResourceTypeVpcEndpoint, tagsOf(hcp, obj).With(endpointTag, obj.Name)),
		}, once)
		if err != nil {
			return nil, fault.Told("failed to create a VPC endpoint of "+obj.Status.EndpointServiceName, err)
		}
		obj.Status.EndpointID = aws.ToString(made.VpcEndpoint.VpcEndpointId)
		return made.VpcEndpoint, nil
	}
	obj.Status.EndpointID = aws.ToString(e.VpcEndpointId)
	in := &ec2.ModifyVpcEndpointInput{VpcEndpointId: e.VpcEndpointId}
	in.AddSubnetIds, in.RemoveSubnetIds = difference(e.SubnetIds, subnets)
	in.AddSecurityGroupIds = []string{obj.Status.SecurityGroupID}
	for _, g := range e.Groups {
		if aws.ToString(g.GroupId) == obj.Status.SecurityGroupID {
			in.AddSecurityGroupIds = nil
		}
	}
	if len(in.AddSubnetIds)+len(in.RemoveSubnetIds)+len(in.AddSecurityGroupIds) > 0 {
		if _, err := c.ec2.ModifyVpcEndpoint(ctx, in); err != nil {
			return nil, fault.Told("failed to change VPC endpoint "+obj.Status.EndpointID, err)
		}
	}
	return e, nil
}

// subnets are those of a list in which an endpoint can be.
func (c *Consumer) subnets(ctx context.Context, ids []string) ([]string, error) {
	out, err := c.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: ids})
	if err != nil {
		return nil, fault.Told(fmt.Sprintf("failed to find the subnets of NodePools (%d)", len(ids)), err)
	}
	list := apart(out.Subnets)
	if len(list) == 0 {
		return nil, errors.New("the subnets of NodePools don't exist: name others by spec.platform.aws.subnet.id of the NodePools")
	}
	return list, nil
}

// remove deletes endpoint, group and records, and says so by nil.
func (c *Consumer) remove(ctx context.Context, obj *hyperv1.AWSEndpointService, hcp *hyperv1.HostedControlPlane) error {
	id := obj.Status.EndpointID // it is forgotten when the endpoint is gone, and tells whose the records are
	e, err := c.endpoint(ctx, obj, hcp, false)
	if err != nil {
		return err
	}
	if e != nil {
		id = aws.ToString(e.VpcEndpointId)
		if state(string(e.State)) != "deleting" {
			if err := c.deleteEndpoint(ctx, id); err != nil {
				return err
			}
		}
		if e, err = c.endpoint(ctx, obj, hcp, false); err != nil {
			return err
		} else if e != nil {
			return waitFor("VPC endpoint %s is being deleted", id)
		}
	}
	if err := c.removeGroup(ctx, obj, hcp); err != nil {
		return err
	}
	return c.removeRecords(ctx, obj, hcp, id)
}

// removeGroup deletes the security group. Rules go first, since two groups that name each other can't be deleted.
func (c *Consumer) removeGroup(ctx context.Context, obj *hyperv1.AWSEndpointService, hcp *hyperv1.HostedControlPlane) error {
	g, err := c.group(ctx, hcp.Spec.InfraID, obj.Name)
	if err != nil || g == nil {
		return err
	}
	what := "security group " + aws.ToString(g.GroupId)
	if len(g.IpPermissions) > 0 {
		_, err := c.ec2.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: g.GroupId, IpPermissions: g.IpPermissions})
		if err != nil && !fault.Gone(err) {
			return fault.Told("failed to revoke ingress rules of "+what, err)
		}
	}
	if len(g.IpPermissionsEgress) > 0 {
		_, err := c.ec2.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{GroupId: g.GroupId, IpPermissions: g.IpPermissionsEgress})
		if err != nil && !fault.Gone(err) {
			return fault.Told("failed to revoke egress rules of "+what, err)
		}
	}
	switch _, err := c.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: g.GroupId}); {
	case fault.Gone(err):
		return nil
	case fault.Is(err, "DependencyViolation"):
		return waitFor("Something else uses %s still: the interfaces of the endpoint take a while to go", what)
	default:
		return fault.Told("failed to delete "+what, err)
	}
}
