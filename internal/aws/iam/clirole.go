package iam

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"

	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/aws/tags"
)

// CLIRoleName is the default name of the role that may make and remove infrastructure and roles.
const CLIRoleName = "hypershift-cli-role"

var roleName = regexp.MustCompile(`^[\w+=,.@-]{1,64}$`)

// cliPolicy is what commands call.
func cliPolicy() Document {
	return document(
		allow(`ec2: CreateDhcpOptions DeleteSubnet ReplaceRouteTableAssociation DescribeAddresses DescribeInstances DeleteVpcEndpoints CreateNatGateway
			CreateVpc DescribeDhcpOptions AttachInternetGateway DeleteVpcEndpointServiceConfigurations DeleteRouteTable AssociateRouteTable
			DescribeInternetGateways DescribeAvailabilityZones CreateRoute CreateInternetGateway RevokeSecurityGroupEgress ModifyVpcAttribute
			DeleteInternetGateway DescribeVpcEndpointConnections RejectVpcEndpointConnections DescribeRouteTables ReleaseAddress AssociateDhcpOptions
			TerminateInstances CreateTags DeleteRoute CreateRouteTable DetachInternetGateway DescribeVpcEndpointServiceConfigurations
			DescribeNatGateways DisassociateRouteTable AllocateAddress DescribeSecurityGroups RevokeSecurityGroupIngress CreateVpcEndpoint
			DescribeVpcs DeleteSecurityGroup DeleteDhcpOptions DeleteNatGateway DescribeVpcEndpoints DeleteVpc CreateSubnet DescribeSubnets
			DescribeVpcAttribute ReplaceRoute CreateSecurityGroup AuthorizeSecurityGroupIngress RunInstances CreateKeyPair DeleteKeyPair
			DescribeKeyPairs ImportKeyPair DescribeImages GetConsoleOutput DescribeVolumes DescribeSnapshots`).named("EC2"),
		allow("elasticloadbalancing: DeleteLoadBalancer DescribeLoadBalancers DescribeTargetGroups DeleteTargetGroup").named("ELB"),
		allow("iam: PassRole", "arn:*:iam::*:role/*-worker-role").named("IAMPassRole").
			when("ForAnyValue:StringEqualsIfExists", "iam:PassedToService", "ec2.amazonaws.com"),
		allow(`iam: CreateInstanceProfile DeleteInstanceProfile TagInstanceProfile GetRole UpdateAssumeRolePolicy GetInstanceProfile TagRole
			RemoveRoleFromInstanceProfile CreateRole DeleteRole PutRolePolicy AddRoleToInstanceProfile CreateOpenIDConnectProvider
			TagOpenIDConnectProvider ListOpenIDConnectProviders DeleteRolePolicy UpdateRole DeleteOpenIDConnectProvider GetRolePolicy
			ListAttachedRolePolicies ListRolePolicies DetachRolePolicy AttachRolePolicy GetOpenIDConnectProvider AddClientIDToOpenIDConnectProvider
			UpdateOpenIDConnectProviderThumbprint`).named("IAM"),
		allow(`route53: ListHostedZonesByVPC CreateHostedZone ListHostedZones ChangeResourceRecordSets ChangeTagsForResource ListResourceRecordSets
			DeleteHostedZone AssociateVPCWithHostedZone ListHostedZonesByName GetHostedZone ListTagsForResource`).named("Route53"),
		allow(`s3: ListAllMyBuckets ListBucket DeleteObject DeleteBucket ListBucketVersions DeleteObjectVersion ListBucketMultipartUploads
			AbortMultipartUpload`).named("S3"),
	)
}

// CLIRole makes a role, which the caller may take on, with the permissions that commands need, and gives its ARN.
func CLIRole(ctx context.Context, cfg aws.Config, name string, additional tags.Set, s Surroundings) (string, error) {
	if !roleName.MatchString(name) {
		return "", errors.New("--name: must be 1 to 64 letters, digits and +=,.@_-")
	}
	caller, _, err := session.Caller(ctx, cfg)
	if err != nil {
		return "", fmt.Errorf("asking who is calling: %w", fault.Explain(err))
	}
	r := newRun(Options{AdditionalTags: additional}, NewAccount(cfg), nil, s)
	arn, err := r.role(ctx, r.cluster, name, trustARNs(caller), additional)
	if err == nil {
		err = r.inline(ctx, r.cluster, name, name, cliPolicy())
	}
	if err != nil {
		return "", fault.Explain(err)
	}
	return arn, nil
}
