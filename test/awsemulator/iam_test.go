//go:build aws

package awsemulator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/iam"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/aws/iam"
)

func iamOptions() iam.Options {
	return iam.Options{InfraID: "demo", Name: "demo", Region: region, PublicZoneID: "PUB", PrivateZoneID: "PRIV", LocalZoneID: "LOC",
		BucketName: "docs", BucketRegion: region, KMSKeyARN: "arn:aws:kms:eu-central-1:123456789012:key/k"}
}

func TestIAM(t *testing.T) {
	c := newCloud(t)
	account := iam.NewAccount(c.config)
	client := sdk.NewFromConfig(c.config)
	s := iam.Surroundings{Log: t.Logf, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	other := iamOptions()
	other.InfraID = "demo-2"
	_, err := iam.Create(c.ctx, other, account, nil, s)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	before := c.State(t, region)
	for name, change := range map[string]func(*iam.Options){
		"a role for each":     func(*iam.Options) {},
		"one role for all":    func(o *iam.Options) { o.SharedRole = true },
		"a role of Karpenter": func(o *iam.Options) { o.AutoNode, o.KMSKeyARN = true, "" },
	} {
		t.Run("When roles are made twice with "+name+" it should make them once, and destroy them", func(t *testing.T) {
			g := NewWithT(t)
			o := iamOptions()
			change(&o)
			out, err := iam.Create(c.ctx, o, account, nil, s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.IssuerURL).To(Equal("https://docs.s3.eu-central-1.amazonaws.com/demo"))
			g.Expect(out.ProfileName).To(Equal("demo-worker"))
			g.Expect(out.Roles.NetworkARN).To(HavePrefix("arn:aws:iam::123456789012:role/demo-"))
			g.Expect(out.KMSProviderRoleARN != "").To(Equal(o.KMSKeyARN != ""))
			c.Forget()
			again, err := iam.Create(c.ctx, o, account, nil, s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again).To(Equal(out))
			g.Expect(names(c.Mutating())).To(BeEmpty())
			g.Expect(iam.Destroy(c.ctx, iam.DestroyOptions{InfraID: "demo"}, account, nil, s)).To(Succeed())
			g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
			c.Forget()
			g.Expect(iam.Destroy(c.ctx, iam.DestroyOptions{InfraID: "demo"}, account, nil, s)).To(Succeed())
			g.Expect(names(c.Mutating())).To(BeEmpty())
		})
	}
	t.Run("When making or destroying is interrupted at any change it should be completed by the next run", func(t *testing.T) {
		g := NewWithT(t)
		_, err := iam.Create(c.ctx, iamOptions(), account, nil, s)
		g.Expect(err).NotTo(HaveOccurred())
		want := kinds(c.State(t, region))
		g.Expect(iam.Destroy(c.ctx, iam.DestroyOptions{InfraID: "demo"}, account, nil, s)).To(Succeed())
		for n := 1; ; n++ {
			if !c.interrupted(n, func(ctx context.Context) { _, _ = iam.Create(ctx, iamOptions(), account, nil, iam.Surroundings{}) }) {
				break
			}
			_, err := iam.Create(c.ctx, iamOptions(), account, nil, iam.Surroundings{})
			g.Expect(err).NotTo(HaveOccurred(), "change %d", n)
			g.Expect(kinds(c.State(t, region))).To(Equal(want), "change %d", n)
			c.interrupted(n, func(ctx context.Context) {
				_ = iam.Destroy(ctx, iam.DestroyOptions{InfraID: "demo"}, account, nil, iam.Surroundings{})
			})
			g.Expect(iam.Destroy(c.ctx, iam.DestroyOptions{InfraID: "demo"}, account, nil, iam.Surroundings{})).To(Succeed())
			g.Expect(Changes(before, c.State(t, region))).To(BeEmpty(), "change %d", n)
		}
		g.Expect(iam.Destroy(c.ctx, iam.DestroyOptions{InfraID: "demo"}, account, nil, s)).To(Succeed())
	})
	t.Run("When a role trusts another issuer it should trust the right one again, and extra policies shouldn't keep it from going", func(t *testing.T) {
		g := NewWithT(t)
		_, err := iam.Create(c.ctx, iamOptions(), account, nil, s)
		g.Expect(err).NotTo(HaveOccurred())
		moved := iamOptions()
		moved.BucketName = "elsewhere"
		_, err = iam.Create(c.ctx, moved, account, nil, s)
		g.Expect(err).NotTo(HaveOccurred())
		role, err := client.GetRole(c.ctx, &sdk.GetRoleInput{RoleName: aws.String("demo-node-pool")})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(aws.ToString(role.Role.AssumeRolePolicyDocument)).To(ContainSubstring("elsewhere"))
		_, err = client.PutRolePolicy(c.ctx, &sdk.PutRolePolicyInput{RoleName: aws.String("demo-node-pool"), PolicyName: aws.String("extra"),
			PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}`)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(iam.Destroy(c.ctx, iam.DestroyOptions{InfraID: "demo"}, account, nil, s)).To(Succeed())
		g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
	})
	t.Run("When the role of the CLI is made it should be the caller's to take on", func(t *testing.T) {
		g := NewWithT(t)
		arn, err := iam.CLIRole(c.ctx, c.config, "cli", nil, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(arn).To(HaveSuffix(":role/cli"))
		c.Forget()
		_, err = iam.CLIRole(c.ctx, c.config, "cli", nil, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(c.Mutating())).To(BeEmpty())
	})
	t.Run("When a role's quota is used up it should say so", func(t *testing.T) {
		c.Fail(Fault{Service: "iam", Action: "CreateRole", Code: "LimitExceeded", Status: 409})
		defer c.Heal()
		_, err := iam.Create(c.ctx, iamOptions(), account, nil, s)
		NewWithT(t).Expect(fmt.Sprint(err)).To(And(ContainSubstring("LimitExceeded"), ContainSubstring("quota")))
		NewWithT(t).Expect(strings.Count(fmt.Sprint(err), "\n")).To(BeZero())
	})
}
