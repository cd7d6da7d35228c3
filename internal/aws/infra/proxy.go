package infra

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/tags"
)

const (
	proxyPort  = 3128
	proxyImage = "resolve:ssm:/aws/service/ami-amazon-linux-latest/amzn2-ami-hvm-x86_64-gp2"
	// proxyUserData installs a proxy that connects to any port: ports of a cluster's services are none that squid knows.
	proxyUserData = `#!/bin/bash
yum install -y squid
sed -e 's|^http_access deny CONNECT !SSL_ports||' /etc/squid/squid.conf > /tmp/squid.conf
mv /tmp/squid.conf /etc/squid/squid.conf
systemctl enable --now squid
`
)

func proxyName(infraID string) string { return infraID + "-http-proxy" }

// proxy makes the way to the internet that machines without one need.
func (r *run) proxy(ctx context.Context, made *parts) error {
	group, err := r.proxyGroup(ctx)
	if err != nil {
		return err
	}
	if r.o.ProxyVPCEndpointServiceName != "" {
		return r.proxyEndpoint(ctx, group, made.private[0])
	}
	return r.proxyHost(ctx, group, made.public[0])
}

func (r *run) proxyGroup(ctx context.Context) (string, error) {
	name := r.o.InfraID + "-proxy-sg"
	group, err := ensure(ctx, r, "security group "+name, func() (*types.SecurityGroup, error) {
		out, err := r.net.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: r.named(name)})
		if err != nil {
			return nil, err
		}
		return first(out.SecurityGroups), nil
	}, func() (*types.SecurityGroup, error) {
		out, err := r.net.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
			GroupName: &name, Description: aws.String("proxy security group"), VpcId: &r.output.VPCID,
			TagSpecifications: r.tagged(types.ResourceTypeSecurityGroup, tags.Name, name)}, once)
		if err != nil {
			return nil, err
		}
		return &types.SecurityGroup{GroupId: out.GroupId}, r.visible(ctx, "security group "+name, visibleTries, visibleWait, func() (bool, error) {
			seen, err := r.net.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{aws.ToString(out.GroupId)}})
			return err == nil && len(seen.SecurityGroups) > 0, err
		})
	})
	if err != nil {
		return "", err
	}
	rules := []types.IpPermission{
		{IpProtocol: aws.String("tcp"), FromPort: aws.Int32(22), ToPort: aws.Int32(22), IpRanges: []types.IpRange{{CidrIp: aws.String(everywhere)}}},
		{IpProtocol: aws.String("-1"), IpRanges: []types.IpRange{{CidrIp: aws.String("10.0.0.0/8")}}},
	}
	for _, rule := range rules {
		if slices.ContainsFunc(group.IpPermissions, func(p types.IpPermission) bool { return sameRule(p, rule) }) {
			continue
		}
		_, err := r.net.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: group.GroupId, IpPermissions: []types.IpPermission{rule}})
		if err != nil && !fault.Is(err, "InvalidPermission.Duplicate") {
			return "", fmt.Errorf("opening security group %s: %w", name, err)
		}
	}
	return aws.ToString(group.GroupId), nil
}

// sameRule compares rules of one range.
func sameRule(a, b types.IpPermission) bool {
	return aws.ToString(a.IpProtocol) == aws.ToString(b.IpProtocol) && aws.ToInt32(a.FromPort) == aws.ToInt32(b.FromPort) &&
		slices.ContainsFunc(a.IpRanges, func(r types.IpRange) bool { return aws.ToString(r.CidrIp) == aws.ToString(b.IpRanges[0].CidrIp) })
}

func (r *run) proxyEndpoint(ctx context.Context, group, subnet string) error {
	name := proxyName(r.o.InfraID)
	endpoint, err := ensure(ctx, r, "endpoint "+name, func() (*types.VpcEndpoint, error) {
		out, err := r.net.DescribeVpcEndpoints(ctx, &ec2.DescribeVpcEndpointsInput{Filters: r.named(name)})
		if err != nil {
			return nil, err
		}
		return first(slices.DeleteFunc(out.VpcEndpoints, func(e types.VpcEndpoint) bool { return endpointEnded(e.State) })), nil
	}, func() (*types.VpcEndpoint, error) {
		out, err := r.net.CreateVpcEndpoint(ctx, &ec2.CreateVpcEndpointInput{
			VpcId: &r.output.VPCID, ServiceName: &r.o.ProxyVPCEndpointServiceName, VpcEndpointType: types.VpcEndpointTypeInterface,
			SubnetIds: []string{subnet}, SecurityGroupIds: []string{group}, PrivateDnsEnabled: aws.Bool(false),
			TagSpecifications: r.tagged(types.ResourceTypeVpcEndpoint, tags.Name, name)}, once)
		if err != nil {
			return nil, err
		}
		return out.VpcEndpoint, nil
	})
	if err != nil {
		return err
	}
	if len(endpoint.DnsEntries) == 0 {
		return fmt.Errorf("endpoint %s has no DNS name yet: run the command again", name)
	}
	r.output.ProxyAddr = fmt.Sprintf("http://%s:%d", aws.ToString(endpoint.DnsEntries[0].DnsName), proxyPort)
	return nil
}

// liveStates are those of instances that are there, or will be.
var liveStates = []string{"pending", "running", "stopping", "stopped"}

func (r *run) proxyHost(ctx context.Context, group, subnet string) error {
	name := proxyName(r.o.InfraID)
	host, err := ensure(ctx, r, "proxy "+name, func() (*types.Instance, error) {
		out, err := r.net.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: append(r.named(name), ec2values.Filter("instance-state-name", liveStates...))})
		if err != nil || len(out.Reservations) == 0 {
			return nil, err
		}
		return first(out.Reservations[0].Instances), nil
	}, func() (*types.Instance, error) {
		// Nothing uses a key of a run that ended before its machine was made, and its private half is lost.
		if _, err := r.net.DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: &name}); err != nil && !fault.Gone(err) {
			return nil, err
		}
		key, err := r.net.CreateKeyPair(ctx, &ec2.CreateKeyPairInput{KeyName: &name, TagSpecifications: r.tagged(types.ResourceTypeKeyPair)}, once)
		if err != nil {
			return nil, err
		}
		r.output.ProxyPrivateSSHKey = base64.StdEncoding.EncodeToString([]byte(aws.ToString(key.KeyMaterial)))
		out, err := r.net.RunInstances(ctx, &ec2.RunInstancesInput{
			ImageId: aws.String(proxyImage), InstanceType: types.InstanceTypeT2Micro, KeyName: &name, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
			UserData: aws.String(base64.StdEncoding.EncodeToString([]byte(proxyUserData))),
			NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{
				DeviceIndex: aws.Int32(0), AssociatePublicIpAddress: aws.Bool(true), DeleteOnTermination: aws.Bool(true), SubnetId: &subnet, Groups: []string{group}}},
			TagSpecifications: r.tagged(types.ResourceTypeInstance, tags.Name, name),
		}, once)
		if err != nil {
			return nil, err
		}
		return first(out.Instances), nil
	}, "InvalidGroup.NotFound", "InvalidSubnetID.NotFound", "InvalidKeyPair.Duplicate")
	if err != nil {
		return err
	}
	if r.output.ProxyPrivateSSHKey == "" {
		r.Log("the SSH key of proxy %s is in the output of the run that made it, and nowhere else", name)
	}
	r.output.ProxyAddr = fmt.Sprintf("http://%s:%d", aws.ToString(host.PrivateIpAddress), proxyPort)
	return nil
}
