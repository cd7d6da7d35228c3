//go:build aws

package awsemulator

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ram"
	ramtypes "github.com/aws/aws-sdk-go-v2/service/ram/types"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/aws/infra"
	"hcp.internal/platform/internal/aws/session"
)

// ofOwner is what the VPC's account has of the cluster.
func (c *cloud) ofOwner(g Gomega, cfg aws.Config) (list []string) {
	network, ours := ec2.NewFromConfig(cfg), []types.Filter{{Name: aws.String("tag:kubernetes.io/cluster/demo"), Values: []string{"owned"}}}
	vpcs, err := network.DescribeVpcs(c.ctx, &ec2.DescribeVpcsInput{Filters: ours})
	g.Expect(err).NotTo(HaveOccurred())
	for _, v := range vpcs.Vpcs {
		list = append(list, "VPC "+aws.ToString(v.VpcId))
	}
	subnets, err := network.DescribeSubnets(c.ctx, &ec2.DescribeSubnetsInput{Filters: ours})
	g.Expect(err).NotTo(HaveOccurred())
	for _, s := range subnets.Subnets {
		list = append(list, "subnet "+aws.ToString(s.SubnetId))
	}
	addresses, err := network.DescribeAddresses(c.ctx, &ec2.DescribeAddressesInput{Filters: ours})
	g.Expect(err).NotTo(HaveOccurred())
	for _, a := range addresses.Addresses {
		list = append(list, "address "+aws.ToString(a.AllocationId))
	}
	zones, err := session.Route53(cfg).ListHostedZones(c.ctx, &route53.ListHostedZonesInput{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, z := range zones.HostedZones {
		list = append(list, "zone "+aws.ToString(z.Name))
	}
	shares, err := ram.NewFromConfig(cfg).GetResourceShares(c.ctx, &ram.GetResourceSharesInput{ResourceOwner: ramtypes.ResourceOwnerSelf})
	g.Expect(err).NotTo(HaveOccurred())
	for _, s := range shares.ResourceShares {
		if s.Status == ramtypes.ResourceShareStatusActive {
			list = append(list, "share "+aws.ToString(s.Name))
		}
	}
	return list
}

// TestInfraOfTwoAccounts makes a VPC in one account for a cluster in another.
func TestInfraOfTwoAccounts(t *testing.T) {
	c := newCloud(t)
	before := c.State(t, region)
	cfg := c.config.Copy()
	cfg.Credentials = credentials.NewStaticCredentialsProvider(Owner, "emulated", "")
	both := infra.Accounts{Cluster: c.account, Owner: infra.NewAccount(cfg)}
	quiet := c.log
	quiet.Log = nil
	for name, inCluster := range map[string]bool{"the VPC's account": false, "the cluster's account": true} {
		o, d := options(region+"a", region+"b"), destroyOptions()
		o.PrivateZonesInClusterAccount, d.PrivateZonesInClusterAccount = inCluster, inCluster
		t.Run("When private zones are in "+name+" all should be made once though each change is interrupted, and nothing be left after destroy", func(t *testing.T) {
			g := NewWithT(t)
			// Each run ends after two changes, and the second one's answer is lost; each goes on where the last one ended. With one change a run would only ever
			// say again that the other account may use a zone.
			runs := 0
			for c.interrupted(2, func(ctx context.Context) { _, _ = infra.Create(ctx, o, both, quiet) }) {
				runs++
				g.Expect(runs).To(BeNumerically("<", 120), "making never ends")
			}
			g.Expect(runs).To(BeNumerically(">", 15))
			out, err := infra.Create(c.ctx, o, both, c.log)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.ClusterAccountID).To(Equal(Account))
			g.Expect(out.VPCCreatorAccountID).To(Equal(Owner))
			c.Forget()
			again, err := infra.Create(c.ctx, o, both, c.log)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again).To(Equal(out))
			g.Expect(names(c.Mutating())).To(BeEmpty())

			made := c.ofOwner(g, cfg)
			g.Expect(made).To(ContainElements("VPC "+out.VPCID, "share demo-share"))
			g.Expect(made).To(ContainElement("subnet " + out.Zones[0].SubnetID))
			seen, err := c.ec2.DescribeSubnets(c.ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{out.Zones[0].SubnetID}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(seen.Subnets[0].Tags).To(ContainElement(HaveField("Key", HaveValue(Equal("kubernetes.io/cluster/demo")))), "tags don't cross accounts by themselves")
			zones, err := session.Route53(c.config).ListHostedZones(c.ctx, &route53.ListHostedZonesInput{})
			g.Expect(err).NotTo(HaveOccurred())
			local := ContainElement(HaveField("Name", HaveValue(Equal("demo.hypershift.local."))))
			if inCluster {
				g.Expect(zones.HostedZones).To(local)
			} else {
				g.Expect(zones.HostedZones).NotTo(local)
				g.Expect(made).To(ContainElement("zone demo.hypershift.local."))
			}

			runs = 0
			for c.interrupted(2, func(ctx context.Context) { _ = infra.Destroy(ctx, d, both, quiet) }) {
				runs++
				g.Expect(runs).To(BeNumerically("<", 120), "destroying never ends")
			}
			g.Expect(infra.Destroy(c.ctx, d, both, c.log)).To(Succeed())
			g.Expect(c.ofOwner(g, cfg)).To(BeEmpty())
			g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
		})
	}
}
