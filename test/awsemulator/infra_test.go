//go:build aws

package awsemulator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	route53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/aws/infra"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/aws/tags"
)

const (
	region = "eu-central-1"
	// testTime bounds a test: its passes end when nothing is left, and it doesn't wait between them.
	testTime = 5 * time.Minute
)

// cloud is an account as a user has it: with a public zone, and with objects of others.
type cloud struct {
	*Emulator
	config  aws.Config
	account *infra.Account
	ctx     context.Context
	log     infra.Surroundings
	ec2     *ec2.Client
	zone    string
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	g := NewWithT(t)
	e := Start(t)
	e.Use(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	t.Cleanup(cancel)
	cfg, err := session.Load(ctx, session.Options{Agent: "test", Region: region})
	g.Expect(err).NotTo(HaveOccurred())
	c := &cloud{Emulator: e, config: cfg, account: infra.NewAccount(cfg), ctx: ctx, ec2: ec2.NewFromConfig(cfg)}
	c.log = infra.Surroundings{Log: t.Logf, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	c.prepare(t)
	return c
}

// prepare makes what is there before: the user's zone, and the network of somebody else's cluster.
func (c *cloud) prepare(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	zone, err := session.Route53(c.config).CreateHostedZone(c.ctx, &route53.CreateHostedZoneInput{Name: aws.String("example.com"), CallerReference: aws.String(fmt.Sprint(time.Now().UnixNano()))})
	g.Expect(err).NotTo(HaveOccurred())
	c.zone = aws.ToString(zone.HostedZone.Id)
	other := options(region + "a")
	other.InfraID, other.Name = "demo-2", "demo2" // its identifier begins as ours does
	_, err = infra.Create(c.ctx, other, c.accounts(), c.log)
	g.Expect(err).NotTo(HaveOccurred())
	c.Forget()
}

func (c *cloud) accounts() infra.Accounts { return infra.Accounts{Cluster: c.account} }

func options(zones ...string) infra.Options {
	return infra.Options{InfraID: "demo", Name: "demo", BaseDomain: "example.com", Region: region, Zones: zones, VPCCIDR: "10.0.0.0/16",
		AdditionalTags: tags.Set{"team": "blue"}}
}

func (c *cloud) destroy(t *testing.T) {
	t.Helper()
	NewWithT(t).Expect(infra.Destroy(c.ctx, destroyOptions(), c.accounts(), c.log)).To(Succeed())
}

func destroyOptions() infra.DestroyOptions {
	return infra.DestroyOptions{InfraID: "demo", Name: "demo", BaseDomain: "example.com", Region: region}
}

func names(calls []Call) string {
	var list []string
	for _, c := range calls {
		list = append(list, c.String())
	}
	return strings.Join(list, " ")
}

func TestInfra(t *testing.T) {
	c := newCloud(t)
	before := c.State(t, region)
	for name, change := range map[string]func(*infra.Options){
		"one zone":                 func(*infra.Options) {},
		"two zones":                func(o *infra.Options) { o.Zones = []string{region + "a", region + "b"} },
		"a single NAT gateway":     func(o *infra.Options) { o.Zones, o.SingleNATGateway = []string{region + "a", region + "b"}, true },
		"public subnets only":      func(o *infra.Options) { o.PublicOnly = true },
		"a proxy":                  func(o *infra.Options) { o.EnableProxy = true },
		"no prefix, another range": func(o *infra.Options) { o.BaseDomainPrefix, o.VPCCIDR = "p", "10.7.0.0/16" },
	} {
		t.Run("When infrastructure with "+name+" is made twice it should be made once, and be gone after destroy", func(t *testing.T) {
			g := NewWithT(t)
			o := options(region + "a")
			change(&o)
			out, err := infra.Create(c.ctx, o, c.accounts(), c.log)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.Zones).To(HaveLen(len(o.Zones)))
			g.Expect(out.PublicZoneID).To(Equal(strings.TrimPrefix(c.zone, "/hostedzone/")))
			c.Forget()
			again, err := infra.Create(c.ctx, o, c.accounts(), c.log)
			g.Expect(err).NotTo(HaveOccurred())
			out.ProxyPrivateSSHKey = "" // only the first run has it
			g.Expect(again).To(Equal(out))
			g.Expect(names(c.Mutating())).To(BeEmpty())
			d := destroyOptions()
			d.BaseDomainPrefix = o.BaseDomainPrefix
			g.Expect(infra.Destroy(c.ctx, d, c.accounts(), c.log)).To(Succeed())
			g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
			c.Forget()
			g.Expect(infra.Destroy(c.ctx, d, c.accounts(), c.log)).To(Succeed())
			g.Expect(names(c.Mutating())).To(BeEmpty(), "nothing is left to delete")
		})
	}
}

// interrupted runs f until the n-th call that changes something is carried out; its answer is lost, and so is everything after it. It
// tells whether there was such a call.
func (c *cloud) interrupted(n int, f func(context.Context)) bool {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	count := 0
	c.After(func(call Call) {
		if call.Mutating {
			if count++; count == n {
				cancel()
			}
		}
	})
	f(ctx)
	c.Heal()
	return count >= n
}

// kinds are how many of each kind there are: identifiers differ from run to run.
func kinds(state []string) map[string]int {
	count := map[string]int{}
	for _, line := range state {
		words := strings.SplitN(line, " ", 3)
		count[words[0]+" "+words[1][:min(len(words[1]), 24)]]++
	}
	return count
}

func TestInfraInterrupted(t *testing.T) {
	c := newCloud(t)
	before := c.State(t, region)
	g := NewWithT(t)
	_, err := infra.Create(c.ctx, options(region+"a"), c.accounts(), c.log)
	g.Expect(err).NotTo(HaveOccurred())
	want := kinds(c.State(t, region))
	c.destroy(t)
	quiet := c.log
	quiet.Log = nil
	steps := 0
	for n := 1; ; n++ {
		if !c.interrupted(n, func(ctx context.Context) { _, _ = infra.Create(ctx, options(region+"a"), c.accounts(), quiet) }) {
			break
		}
		steps++
		t.Run(fmt.Sprintf("When making is interrupted at change %d it should be completed by the next run, and destroyed in pieces", n), func(t *testing.T) {
			g := NewWithT(t)
			_, err := infra.Create(c.ctx, options(region+"a"), c.accounts(), quiet)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kinds(c.State(t, region))).To(Equal(want))
			c.interrupted(n, func(ctx context.Context) { _ = infra.Destroy(ctx, destroyOptions(), c.accounts(), quiet) })
			c.destroy(t)
			g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
		})
		if t.Failed() {
			break
		}
	}
	c.destroy(t)
	t.Logf("%d changes", steps)
	g.Expect(steps).To(BeNumerically(">", 20))
}

func TestInfraPartial(t *testing.T) {
	c := newCloud(t)
	before := c.State(t, region)
	t.Run("When only a part was made it should be destroyed", func(t *testing.T) {
		for n := 1; n < 30; n += 4 {
			c.interrupted(n, func(ctx context.Context) {
				_, _ = infra.Create(ctx, options(region+"a"), c.accounts(), infra.Surroundings{})
			})
			c.destroy(t)
			NewWithT(t).Expect(Changes(before, c.State(t, region))).To(BeEmpty(), "after %d changes", n)
		}
	})
}

func TestInfraFaults(t *testing.T) {
	c := newCloud(t)
	before := c.State(t, region)
	for code, remedy := range map[string]string{
		"VpcLimitExceeded": "VPCs per Region", "UnauthorizedOperation": "create iam cli-role", "AuthFailure": "check the credentials",
		"OptInRequired": "enable the region", "PendingVerification": "wait for its mail", "InvalidVpcRange": "--vpc-cidr",
	} {
		t.Run("When AWS answers "+code+" it should end at once and say what to do", func(t *testing.T) {
			g := NewWithT(t)
			c.Fail(Fault{Service: "ec2", Action: "CreateVpc", Code: code, Status: 400})
			c.Forget()
			_, err := infra.Create(c.ctx, options(region+"a"), c.accounts(), c.log)
			c.Heal()
			g.Expect(err).To(MatchError(And(ContainSubstring("EC2 CreateVpc: "+code), ContainSubstring(remedy), Not(ContainSubstring("RequestID")))))
			g.Expect(strings.Count(names(c.Calls()), "CreateVpc")).To(Equal(1))
			g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
		})
	}
	t.Run("When calls are throttled, answers are lost or things aren't known yet it should go on and make each thing once", func(t *testing.T) {
		g := NewWithT(t)
		_, err := infra.Create(c.ctx, options(region+"a"), c.accounts(), c.log)
		g.Expect(err).NotTo(HaveOccurred())
		want := kinds(c.State(t, region))
		c.destroy(t)
		c.Fail(
			Fault{Service: "ec2", Action: "CreateVpc", Times: 1, Lost: true},
			Fault{Service: "ec2", Action: "CreateSubnet", Times: 2, Code: "RequestLimitExceeded", Status: 503},
			Fault{Service: "ec2", Action: "AllocateAddress", Times: 1, Lost: true},
			Fault{Service: "ec2", Action: "CreateNatGateway", Times: 2, Code: "InvalidElasticIpID.NotFound"},
			Fault{Service: "ec2", Action: "CreateRoute", Times: 1, Code: "InvalidNatGatewayID.NotFound"},
			Fault{Service: "ec2", Action: "CreateVpcEndpoint", Times: 1, Code: "InvalidRouteTableId.NotFound"},
			Fault{Service: "ec2", Action: "CreateRouteTable", Times: 1, Raw: "<html>", Status: 500},
		)
		_, err = infra.Create(c.ctx, options(region+"a"), c.accounts(), c.log)
		c.Heal()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kinds(c.State(t, region))).To(Equal(want))
	})
	t.Run("When other things are in the way of destroying it should go on until they aren't", func(t *testing.T) {
		g := NewWithT(t)
		c.Fail(
			Fault{Service: "ec2", Action: "DeleteSubnet", Times: 4, Code: "DependencyViolation"},
			Fault{Service: "ec2", Action: "DetachInternetGateway", Times: 2, Code: "DependencyViolation"},
			Fault{Service: "ec2", Action: "DeleteVpc", Times: 1, Code: "DependencyViolation"},
			Fault{Service: "ec2", Action: "DeleteRouteTable", Times: 1, Code: "InvalidRouteTableID.NotFound"},
		)
		c.destroy(t)
		c.Heal()
		g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
	})
	t.Run("When the grace period ends it should say what is left, and when nothing may be deleted it should end at once", func(t *testing.T) {
		g := NewWithT(t)
		_, err := infra.Create(c.ctx, options(region+"a"), c.accounts(), c.log)
		g.Expect(err).NotTo(HaveOccurred())
		c.Fail(Fault{Service: "ec2", Action: "DeleteVpc", Code: "DependencyViolation"})
		o := destroyOptions()
		o.GracePeriod = 20 * time.Second
		err = infra.Destroy(c.ctx, o, c.accounts(), c.log)
		g.Expect(errors.Is(err, infra.ErrLeft)).To(BeTrue(), "%v", err)
		g.Expect(err).To(MatchError(And(ContainSubstring("VPC vpc-"), ContainSubstring("DependencyViolation"))))
		c.Heal()
		c.Fail(Fault{Service: "ec2", Action: "DeleteVpc", Code: "UnauthorizedOperation", Status: 403})
		g.Expect(infra.Destroy(c.ctx, destroyOptions(), c.accounts(), c.log)).To(MatchError(ContainSubstring("create iam cli-role")))
		c.Heal()
		c.destroy(t)
		g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
	})
}

func TestInfraRefusals(t *testing.T) {
	c := newCloud(t)
	before := c.State(t, region)
	t.Run("When the base domain has no zone it should say so before anything is made", func(t *testing.T) {
		g := NewWithT(t)
		o := options(region + "a")
		o.BaseDomain = "example.net"
		_, err := infra.Create(c.ctx, o, c.accounts(), c.log)
		g.Expect(err).To(MatchError(ContainSubstring("hosted zone example.net not found")))
		g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
	})
	t.Run("When a private zone is another cluster's it should refuse before anything is made", func(t *testing.T) {
		g := NewWithT(t)
		o := options(region + "a")
		o.Name = "demo2"
		_, err := infra.Create(c.ctx, o, c.accounts(), c.log)
		g.Expect(err).To(MatchError(ContainSubstring("isn't this cluster's")))
		g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
	})
	t.Run("When zones come in another order than at first it should refuse", func(t *testing.T) {
		g := NewWithT(t)
		_, err := infra.Create(c.ctx, options(region+"a", region+"b"), c.accounts(), c.log)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = infra.Create(c.ctx, options(region+"b", region+"a"), c.accounts(), c.log)
		g.Expect(err).To(MatchError(ContainSubstring("in the order of the first run")))
		c.destroy(t)
	})
}

func TestInfraUsed(t *testing.T) {
	c := newCloud(t)
	before := c.State(t, region)
	g := NewWithT(t)
	out, err := infra.Create(c.ctx, options(region+"a"), c.accounts(), c.log)
	g.Expect(err).NotTo(HaveOccurred())
	buckets := session.S3(c.config)
	t.Run("When a cluster used its infrastructure it should all be destroyed", func(t *testing.T) {
		g := NewWithT(t)
		owned := []types.Tag{{Key: aws.String("kubernetes.io/cluster/demo"), Value: aws.String("owned")}}
		var groups []string
		for _, name := range []string{"one", "two"} {
			group, err := c.ec2.CreateSecurityGroup(c.ctx, &ec2.CreateSecurityGroupInput{GroupName: &name, Description: &name, VpcId: &out.VPCID})
			g.Expect(err).NotTo(HaveOccurred())
			groups = append(groups, aws.ToString(group.GroupId))
		}
		for i := range groups { // each lets the other in
			_, err := c.ec2.AuthorizeSecurityGroupIngress(c.ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &groups[i], IpPermissions: []types.IpPermission{{
				IpProtocol: aws.String("-1"), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &groups[1-i]}}}}})
			g.Expect(err).NotTo(HaveOccurred())
		}
		_, err := c.ec2.RunInstances(c.ctx, &ec2.RunInstancesInput{ImageId: aws.String("ami-12345678"), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), SubnetId: &out.Zones[0].SubnetID,
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: owned}}})
		g.Expect(err).NotTo(HaveOccurred())
		bucket := "demo-image-registry-x"
		_, err = buckets.CreateBucket(c.ctx, &s3.CreateBucketInput{Bucket: &bucket, CreateBucketConfiguration: &s3types.CreateBucketConfiguration{LocationConstraint: region}})
		g.Expect(err).NotTo(HaveOccurred())
		for i := range 5 {
			_, err = buckets.PutObject(c.ctx, &s3.PutObjectInput{Bucket: &bucket, Key: aws.String(fmt.Sprint("k", i)), Body: strings.NewReader("x")})
			g.Expect(err).NotTo(HaveOccurred())
		}
		var changes []route53types.Change
		for _, name := range []string{"*.apps.demo.example.com", "keep.example.com"} {
			changes = append(changes, route53types.Change{Action: route53types.ChangeActionUpsert, ResourceRecordSet: &route53types.ResourceRecordSet{
				Name: &name, Type: route53types.RRTypeA, TTL: aws.Int64(30), ResourceRecords: []route53types.ResourceRecord{{Value: aws.String("10.0.0.1")}}}})
		}
		_, err = session.Route53(c.config).ChangeResourceRecordSets(c.ctx, &route53.ChangeResourceRecordSetsInput{HostedZoneId: &c.zone, ChangeBatch: &route53types.ChangeBatch{Changes: changes}})
		g.Expect(err).NotTo(HaveOccurred())
		c.destroy(t)
		var kept []string
		for _, line := range c.State(t, region) {
			if strings.Contains(line, "keep.example.com") {
				kept = append(kept, line)
			}
			g.Expect(line).NotTo(ContainSubstring("apps.demo"))
			g.Expect(line).NotTo(ContainSubstring(out.VPCID))
			g.Expect(line).NotTo(ContainSubstring(bucket))
		}
		g.Expect(kept).To(HaveLen(1))
		for _, line := range before {
			if !strings.Contains(line, "ResourceRecordSetCount") {
				g.Expect(c.State(t, region)).To(ContainElement(line))
			}
		}
	})
}
