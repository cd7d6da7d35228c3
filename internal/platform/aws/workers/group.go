package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/aws/tags"
)

// API is what is asked of EC2; NewAPI makes the real one.
type API interface {
	// Renew has the next call trade a token for credentials, also when those of before are still good.
	Renew()
	DescribeVpcEndpoints(context.Context, *ec2.DescribeVpcEndpointsInput, ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointsOutput, error)
	DescribeVpcs(context.Context, *ec2.DescribeVpcsInput, ...func(*ec2.Options)) (*ec2.DescribeVpcsOutput, error)
	DescribeSecurityGroups(context.Context, *ec2.DescribeSecurityGroupsInput, ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error)
	CreateSecurityGroup(context.Context, *ec2.CreateSecurityGroupInput, ...func(*ec2.Options)) (*ec2.CreateSecurityGroupOutput, error)
	DeleteSecurityGroup(context.Context, *ec2.DeleteSecurityGroupInput, ...func(*ec2.Options)) (*ec2.DeleteSecurityGroupOutput, error)
	AuthorizeSecurityGroupIngress(context.Context, *ec2.AuthorizeSecurityGroupIngressInput, ...func(*ec2.Options)) (*ec2.AuthorizeSecurityGroupIngressOutput, error)
	RevokeSecurityGroupIngress(context.Context, *ec2.RevokeSecurityGroupIngressInput, ...func(*ec2.Options)) (*ec2.RevokeSecurityGroupIngressOutput, error)
	RevokeSecurityGroupEgress(context.Context, *ec2.RevokeSecurityGroupEgressInput, ...func(*ec2.Options)) (*ec2.RevokeSecurityGroupEgressOutput, error)
	CreateTags(context.Context, *ec2.CreateTagsInput, ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error)
	DeleteTags(context.Context, *ec2.DeleteTagsInput, ...func(*ec2.Options)) (*ec2.DeleteTagsOutput, error)
}

// NewAPI makes a client from the environment of the process. It makes no request.
func NewAPI(ctx context.Context, region string) (API, error) {
	cfg, err := session.Load(ctx, session.Options{Agent: "control-plane-operator", Region: region})
	if err != nil {
		return nil, err
	}
	return ec2Client{ec2.NewFromConfig(cfg)}, nil
}

// visibleWithin is how long AWS may take to show a group that was just made.
const visibleWithin = 30 * time.Second

// find looks for the cluster's group by its tags; nil: there is none.
func find(ctx context.Context, api API, infraID string) (*types.SecurityGroup, error) {
	out, err := api.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: ec2values.Owned(infraID, ec2values.Named(GroupName(infraID)))})
	if err != nil || len(out.SecurityGroups) == 0 {
		return nil, err
	}
	return &out.SecurityGroups[0], nil
}

// ensure makes the group and its rules, as far as they are missing, and returns its ID. It may be interrupted anywhere.
func ensure(ctx context.Context, api API, hcp *hyperv1.HostedControlPlane) (string, error) {
	config := hcp.Spec.Platform.AWS.CloudProviderConfig
	if config == nil || config.VPC == "" {
		return "", errors.New("spec.platform.aws.cloudProviderConfig.vpc is missing: name the VPC of the machines")
	}
	cidrs := networks(hcp)
	if len(cidrs) == 0 {
		return "", errors.New("spec.networking.machineNetwork is empty: name the networks of the machines")
	}
	vpcs, err := api.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{VpcIds: []string{config.VPC}})
	if err != nil {
		return "", fault.Told("failed to find VPC "+config.VPC, err)
	}
	if len(vpcs.Vpcs) == 0 {
		return "", fmt.Errorf("VPC %s does not exist in this region", config.VPC)
	}
	group, err := find(ctx, api, hcp.Spec.InfraID)
	if err != nil {
		return "", fault.Told("cannot list security groups", err)
	}
	if group == nil {
		if group, err = create(ctx, api, hcp, config.VPC); err != nil {
			return "", err
		}
	}
	id := aws.ToString(group.GroupId)
	missing := missingRules(ingress(id, aws.ToString(group.OwnerId), cidrs), group.IpPermissions)
	if len(missing) == 0 {
		return id, nil
	}
	_, err = api.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: group.GroupId, IpPermissions: missing})
	if err != nil && !fault.Is(err, "InvalidPermission.Duplicate") {
		return "", fault.Told("failed to set ingress rules of security group "+id, err)
	}
	return id, nil
}

func create(ctx context.Context, api API, hcp *hyperv1.HostedControlPlane, vpc string) (*types.SecurityGroup, error) {
	made, err := api.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: aws.String(GroupName(hcp.Spec.InfraID)), Description: aws.String(description), VpcId: aws.String(vpc),
		TagSpecifications: ec2values.Tagged(types.ResourceTypeSecurityGroup, wantedTags(hcp)),
	})
	if err != nil {
		return nil, fault.Told("failed to create the default security group", err)
	}
	look := &ec2.DescribeSecurityGroupsInput{GroupIds: []string{aws.ToString(made.GroupId)}}
	if err := ec2.NewSecurityGroupExistsWaiter(api).Wait(ctx, look, visibleWithin); err != nil {
		return nil, fault.Told("failed to see security group "+aws.ToString(made.GroupId), err)
	}
	out, err := api.DescribeSecurityGroups(ctx, look)
	if err != nil || len(out.SecurityGroups) == 0 {
		return nil, fault.Told("failed to read security group "+aws.ToString(made.GroupId), err)
	}
	return &out.SecurityGroups[0], nil
}

// missingRules are those of want of which have has no like.
func missingRules(want, have []types.IpPermission) []types.IpPermission {
	known := map[string]bool{}
	for _, rule := range have {
		for _, key := range keysOf(rule) {
			known[key] = true
		}
	}
	var missing []types.IpPermission
	for _, rule := range want {
		for _, key := range keysOf(rule) {
			if !known[key] {
				missing = append(missing, rule)
				break
			}
		}
	}
	return missing
}

// keysOf tells rules apart: AWS joins those of the same ports in one.
func keysOf(rule types.IpPermission) []string {
	port := func(p *int32) int32 {
		if p == nil {
			return allPorts
		}
		return *p
	}
	ports := fmt.Sprintf("%s %d-%d", aws.ToString(rule.IpProtocol), port(rule.FromPort), port(rule.ToPort))
	var keys []string
	for _, g := range rule.UserIdGroupPairs {
		keys = append(keys, ports+" "+aws.ToString(g.GroupId))
	}
	for _, r := range rule.IpRanges {
		keys = append(keys, ports+" "+aws.ToString(r.CidrIp))
	}
	return keys
}

// retag brings the tags of a group that is there to those that are wanted. Not to be allowed to is no failure of the cluster's.
func retag(ctx context.Context, api API, id string, before, want tags.Set) error {
	set, remove := tagChange(before, want)
	var errs []error
	if len(set) > 0 {
		_, err := api.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: ec2values.Tags(set)})
		errs = append(errs, fault.Told("failed to tag security group "+id, err))
	}
	if len(remove) > 0 {
		var gone []types.Tag
		for _, key := range remove {
			gone = append(gone, types.Tag{Key: aws.String(key)})
		}
		_, err := api.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: gone})
		errs = append(errs, fault.Told("failed to take tags off security group "+id, err))
	}
	return errors.Join(errs...)
}

// remove deletes the group, and says so by nil. Rules go first, since two groups that name each other can't be deleted.
func remove(ctx context.Context, api API, infraID string) error {
	group, err := find(ctx, api, infraID)
	if err != nil || group == nil {
		return fault.Told("cannot list security groups", err)
	}
	id := aws.ToString(group.GroupId)
	if len(group.IpPermissions) > 0 {
		_, err := api.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: group.GroupId, IpPermissions: group.IpPermissions})
		if err != nil && !fault.Gone(err) {
			return fault.Told("failed to revoke ingress rules of security group "+id, err)
		}
	}
	if len(group.IpPermissionsEgress) > 0 {
		_, err := api.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{GroupId: group.GroupId, IpPermissions: group.IpPermissionsEgress})
		if err != nil && !fault.Gone(err) {
			return fault.Told("failed to revoke egress rules of security group "+id, err)
		}
	}
	if _, err := api.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: group.GroupId}); err != nil && !fault.Gone(err) {
		return fault.Told("failed to delete security group "+id, err)
	}
	if group, err = find(ctx, api, infraID); err != nil || group == nil {
		return fault.Told("cannot list security groups", err)
	}
	return fmt.Errorf("security group %s is still there", id)
}
