package workers

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// ec2Client is the SDK's with those calls alone that are made. The SDK's own type must not become an interface: programs that run templates keep every
// method of such a type, and this one has seven hundred, which are 30 MB.
type ec2Client struct{ sdk *ec2.Client }

func (c ec2Client) Renew() {
	if cached, ok := c.sdk.Options().Credentials.(*aws.CredentialsCache); ok { // all that come from a token are
		cached.Invalidate()
	}
}

func (c ec2Client) DescribeVpcEndpoints(ctx context.Context, in *ec2.DescribeVpcEndpointsInput, o ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointsOutput, error) {
	return c.sdk.DescribeVpcEndpoints(ctx, in, o...)
}

func (c ec2Client) DescribeVpcs(ctx context.Context, in *ec2.DescribeVpcsInput, o ...func(*ec2.Options)) (*ec2.DescribeVpcsOutput, error) {
	return c.sdk.DescribeVpcs(ctx, in, o...)
}

func (c ec2Client) DescribeSecurityGroups(ctx context.Context, in *ec2.DescribeSecurityGroupsInput, o ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error) {
	return c.sdk.DescribeSecurityGroups(ctx, in, o...)
}

func (c ec2Client) CreateSecurityGroup(ctx context.Context, in *ec2.CreateSecurityGroupInput, o ...func(*ec2.Options)) (*ec2.CreateSecurityGroupOutput, error) {
	return c.sdk.CreateSecurityGroup(ctx, in, o...)
}

func (c ec2Client) DeleteSecurityGroup(ctx context.Context, in *ec2.DeleteSecurityGroupInput, o ...func(*ec2.Options)) (*ec2.DeleteSecurityGroupOutput, error) {
	return c.sdk.DeleteSecurityGroup(ctx, in, o...)
}

func (c ec2Client) AuthorizeSecurityGroupIngress(ctx context.Context, in *ec2.AuthorizeSecurityGroupIngressInput, o ...func(*ec2.Options)) (*ec2.AuthorizeSecurityGroupIngressOutput, error) {
	return c.sdk.AuthorizeSecurityGroupIngress(ctx, in, o...)
}

func (c ec2Client) RevokeSecurityGroupIngress(ctx context.Context, in *ec2.RevokeSecurityGroupIngressInput, o ...func(*ec2.Options)) (*ec2.RevokeSecurityGroupIngressOutput, error) {
	return c.sdk.RevokeSecurityGroupIngress(ctx, in, o...)
}

func (c ec2Client) RevokeSecurityGroupEgress(ctx context.Context, in *ec2.RevokeSecurityGroupEgressInput, o ...func(*ec2.Options)) (*ec2.RevokeSecurityGroupEgressOutput, error) {
	return c.sdk.RevokeSecurityGroupEgress(ctx, in, o...)
}

func (c ec2Client) CreateTags(ctx context.Context, in *ec2.CreateTagsInput, o ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error) {
	return c.sdk.CreateTags(ctx, in, o...)
}

func (c ec2Client) DeleteTags(ctx context.Context, in *ec2.DeleteTagsInput, o ...func(*ec2.Options)) (*ec2.DeleteTagsOutput, error) {
	return c.sdk.DeleteTags(ctx, in, o...)
}
