package main

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/support/supporttest"
)

func TestFlagsAreInTheTable(t *testing.T) { supporttest.Flags(t, "hcp-cloud", command()) }

func TestHelp(t *testing.T) {
	t.Run("When any command is asked for help it should give an example", func(t *testing.T) {
		g := NewWithT(t)
		for _, sub := range command().Commands() {
			g.Expect(sub.Example).NotTo(BeEmpty(), sub.CommandPath())
		}
	})
	t.Run("When it is asked for its version it should give that", func(t *testing.T) {
		g := NewWithT(t)
		out := &bytes.Buffer{}
		cmd := command()
		cmd.SetOut(out)
		cmd.SetArgs([]string{"version"})
		g.Expect(cmd.ExecuteContext(t.Context())).To(Succeed())
		g.Expect(out.String()).To(HavePrefix("hcp-cloud "))
	})
	t.Run("When it isn't told for which control plane it should say so", func(t *testing.T) {
		cmd := command()
		cmd.SetArgs([]string{"control-plane", "--namespace="})
		NewWithT(t).Expect(cmd.ExecuteContext(t.Context())).To(MatchError("--namespace must name the control plane namespace"))
	})
}
