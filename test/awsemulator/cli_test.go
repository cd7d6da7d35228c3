//go:build aws

package awsemulator

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/aws/iam"
	"hcp.internal/platform/internal/aws/infra"
	"hcp.internal/platform/internal/cli/aws"
)

func TestCommands(t *testing.T) {
	c := newCloud(t)
	before := c.State(t, region)
	dir := t.TempDir()
	run := func(cmd *cobra.Command, args ...string) (string, string, error) {
		var out, log bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&log)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(c.ctx)
		return out.String(), log.String(), err
	}
	where := []string{"--infra-id", "demo", "--name", "demo", "--base-domain", "example.com", "--region", region}
	t.Run("When infrastructure and roles are made and destroyed by commands it should describe them in files of the user's own", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(dir, "infra.json")
		g.Expect(os.WriteFile(file, nil, 0o644)).To(Succeed())
		out, log, err := run(aws.CreateInfraCommand(), append([]string{"aws", "--output-file", file, "--additional-tags", "team=blue"}, where...)...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(BeEmpty())
		g.Expect(log).To(ContainSubstring("VPC demo-vpc made"))
		g.Expect(strings.Join(c.State(t, region), "\n")).To(ContainSubstring("tagSet.item.value=cli"), "made by the CLI")
		for _, call := range c.Calls() {
			g.Expect(call.Agent).To(ContainSubstring("hypershift"))
		}
		stat, err := os.Stat(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stat.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		raw, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		var made infra.Output
		g.Expect(json.Unmarshal(raw, &made)).To(Succeed())
		g.Expect(made.Zones).To(Equal([]infra.Zone{{Name: region + "a", SubnetID: made.Zones[0].SubnetID}}))

		out, _, err = run(aws.CreateIAMCommand(), "aws", "--infra-id", "demo", "--region", region, "--public-zone-id", made.PublicZoneID,
			"--private-zone-id", made.PrivateZoneID, "--local-zone-id", made.LocalZoneID,
			"--oidc-storage-provider-s3-bucket-name", "docs", "--oidc-storage-provider-s3-region", region)
		g.Expect(err).NotTo(HaveOccurred())
		var roles iam.Output
		g.Expect(json.Unmarshal([]byte(out), &roles)).To(Succeed())
		g.Expect(roles.Roles.IngressARN).NotTo(BeEmpty())

		_, _, err = run(aws.DestroyIAMCommand(), "aws", "--infra-id", "demo", "--region", region)
		g.Expect(err).NotTo(HaveOccurred())
		_, log, err = run(aws.DestroyInfraCommand(), append([]string{"aws"}, where...)...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(log).To(ContainSubstring("nothing of infrastructure demo is left"))
		g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
	})
	t.Run("When a call is denied it should say as whom it was made", func(t *testing.T) {
		c.Fail(Fault{Service: "ec2", Action: "CreateVpc", Code: "UnauthorizedOperation", Status: 403})
		defer c.Heal()
		_, _, err := run(aws.CreateInfraCommand(), append([]string{"aws"}, where...)...)
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("as arn:aws:"), ContainSubstring("EC2 CreateVpc: UnauthorizedOperation"))))
	})
	t.Run("When the output can't be written it should say so before anything is made", func(t *testing.T) {
		g := NewWithT(t)
		c.Forget()
		_, _, err := run(aws.CreateInfraCommand(), append([]string{"aws", "--output-file", filepath.Join(dir, "none", "x")}, where...)...)
		g.Expect(err).To(MatchError(ContainSubstring("--output-file")))
		g.Expect(c.Calls()).To(BeEmpty())
	})
	t.Run("When credentials don't go together it should refuse", func(t *testing.T) {
		_, _, err := run(aws.CreateInfraCommand(), append([]string{"aws", "--aws-creds", "x", "--role-arn", "arn:aws:iam::1:role/x"}, where...)...)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("use it alone")))
	})
	t.Run("When it is another cloud's it should say that this version has none", func(t *testing.T) {
		_, _, err := run(aws.CreateInfraCommand(), "azure", "--location", "x")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no cloud but AWS")))
	})
}
