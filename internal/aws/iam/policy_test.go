package iam

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

var full = Options{
	InfraID: "demo-1", Region: "us-east-1", PublicZoneID: "PUB", PrivateZoneID: "PRIV", LocalZoneID: "LOC", KMSKeyARN: "arn:aws:kms:us-east-1:1:key/k",
	BucketName: "b", BucketRegion: "r", AutoNode: true,
}

func TestRoles(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"own-vpc": func(*Options) {}, "shared-vpc": func(o *Options) { o.SharedVPC = true },
	} {
		t.Run("When the cluster has "+name+" it should have these roles", func(t *testing.T) {
			g := NewWithT(t)
			o := full
			change(&o)
			policies := map[string]any{}
			for _, x := range roles {
				policies[x.suffix] = map[string]any{
					"trust":  webIdentity("arn:aws:iam::1:oidc-provider/b.s3.r.amazonaws.com/demo-1", "b.s3.r.amazonaws.com/demo-1", x.accounts),
					"policy": document(x.policy(o)...), "managed": x.managed,
				}
			}
			policies["worker"] = workerPolicy()
			policies["cli"] = cliPolicy()
			policies["shared-vpc-route53"], policies["shared-vpc-endpoint"] = sharedRoute53Policy(), sharedEndpointPolicy()
			raw, err := yaml.Marshal(policies)
			g.Expect(err).NotTo(HaveOccurred())
			file := filepath.Join("testdata", name+".yaml")
			if os.Getenv("UPDATE") != "" {
				g.Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
				g.Expect(os.WriteFile(file, raw, 0o644)).To(Succeed())
			}
			want, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(raw)).To(Equal(string(want)), "UPDATE=true writes it anew")
		})
	}
	t.Run("When a role's policy is put inline it should fit into IAM's bound", func(t *testing.T) {
		g := NewWithT(t)
		for _, x := range roles {
			g.Expect(len(document(x.policy(full)...).String())).To(BeNumerically("<", 10240), x.suffix)
		}
	})
}

func TestSame(t *testing.T) {
	t.Run("When a policy comes back escaped and in another order of keys it should be the same", func(t *testing.T) {
		g := NewWithT(t)
		want := document(allow("ec2: A B"))
		g.Expect(same(url.QueryEscape(`{"Statement":[{"Resource":"*","Effect":"Allow","Action":["ec2:A","ec2:B"]}],"Version":"2012-10-17"}`), want)).To(BeTrue())
		g.Expect(same(want.String(), document(allow("ec2: A")))).To(BeFalse())
		g.Expect(same("%", want)).To(BeFalse())
	})
}

func TestValidate(t *testing.T) {
	t.Run("When all is there it should agree", func(t *testing.T) { NewWithT(t).Expect(full.Validate()).To(Succeed()) })
	for name, tc := range map[string]struct {
		change func(*Options)
		err    string
	}{
		"When nothing says where the issuer is it should ask": {func(o *Options) { o.BucketName = "" }, "--oidc-issuer-url"},
		"When the issuer isn't https it should refuse":        {func(o *Options) { o.IssuerURL = "http://x" }, "must begin with https://"},
		"When ROSA's policies have no domain it should ask":   {func(o *Options) { o.UseROSAPolicies = true }, "needs --base-domain"},
		"When names of roles get too long it should refuse":   {func(o *Options) { o.InfraID = "a-very-long-identifier-of-a-cluster" }, "at most 32"},
		"When a zone is missing it should name the flag":      {func(o *Options) { o.LocalZoneID = "" }, "--local-zone-id is required"},
	} {
		t.Run(name, func(t *testing.T) {
			o := full
			tc.change(&o)
			NewWithT(t).Expect(o.Validate()).To(MatchError(ContainSubstring(tc.err)))
		})
	}
}
