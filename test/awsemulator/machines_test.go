//go:build aws

package awsemulator

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/aws/infra"
	"hcp.internal/platform/internal/aws/machines"
)

func TestBastion(t *testing.T) {
	c := newCloud(t)
	g := NewWithT(t)
	before := c.State(t, region)
	_, err := infra.Create(c.ctx, options(region+"a"), c.accounts(), c.log)
	g.Expect(err).NotTo(HaveOccurred())
	with := c.State(t, region)
	b := machines.Bastion{
		InfraID: "demo", PublicKey: []byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl user"), AllowCIDR: "192.0.2.7/32",
		Wait: true, WaitTime: time.Minute, Log: t.Logf, Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	t.Run("When a bastion is made twice it should be made once, show its console, and be gone after destroy", func(t *testing.T) {
		g := NewWithT(t)
		made, err := b.Create(c.ctx, c.config)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(made.PublicIP).NotTo(BeEmpty())
		c.Forget()
		again, err := b.Create(c.ctx, c.config)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(made))
		g.Expect(names(c.Mutating())).To(BeEmpty())
		var files []string
		g.Expect(machines.Consoles(c.ctx, c.config, "demo", func(console machines.Console, err error) error {
			files = append(files, console.File)
			return err
		})).To(Succeed())
		g.Expect(files).To(Equal([]string{"demo-bastion"}))
		c.Fail(Fault{Service: "ec2", Action: "DeleteSecurityGroup", Times: 2, Code: "DependencyViolation"})
		g.Expect(b.Destroy(c.ctx, c.config)).To(Succeed())
		c.Heal()
		// moto keeps the machine's network interface, and with it an address of the subnet.
		g.Expect(slices.DeleteFunc(Changes(with, c.State(t, region)), func(line string) bool {
			return strings.Contains(line, "DescribeNetworkInterfaces") || strings.Contains(line, "DescribeSubnets")
		})).To(BeEmpty())
	})
	t.Run("When the bastion is left it should go with the infrastructure", func(t *testing.T) {
		g := NewWithT(t)
		_, err := b.Create(c.ctx, c.config)
		g.Expect(err).NotTo(HaveOccurred())
		c.destroy(t)
		g.Expect(Changes(before, c.State(t, region))).To(BeEmpty())
	})
	t.Run("When there is no such infrastructure it should say what to check", func(t *testing.T) {
		_, err := b.Create(c.ctx, c.config)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("check --infra-id")))
	})
}
