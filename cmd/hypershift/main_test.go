package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
)

func TestEveryCommandHasHelp(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		t.Run("When "+cmd.CommandPath()+" is asked for help it should show a purpose and an example", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(cmd.Short).NotTo(BeEmpty())
			if flag := cmd.Flags().Lookup("namespace"); flag != nil && !cmd.Hidden {
				g.Expect(flag.Shorthand).To(Equal("n"), "--namespace")
			}
			if !cmd.Hidden {
				g.Expect(cmd.Example).NotTo(BeEmpty())
			}
			if len(cmd.Commands()) == 0 {
				g.Expect(cmd.RunE).NotTo(BeNil())
			}
		})
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(command())
}

func TestRun(t *testing.T) {
	g := NewWithT(t)
	g.Expect(run(t.Context(), "kubectl-package", []string{"tree"})).To(MatchError("accepts 1 arg(s), received 0"))
	g.Expect(run(t.Context(), "kubectl-package", []string{"rollout", "plan", "--help"})).To(Succeed())
	g.Expect(run(t.Context(), "hypershift", []string{"frobnicate"})).To(MatchError(ContainSubstring("frobnicate")))
	g.Expect(run(t.Context(), "hypershift", []string{"completion", "bash"})).To(Succeed())
	for _, path := range [][]string{
		{"install"}, {"install", "render"}, {"create", "cluster", "none"}, {"create", "cluster", "local"}, {"create", "nodepool", "none"},
		{"create", "kubeconfig"}, {"destroy", "cluster", "none"}, {"destroy", "cluster", "local"}, {"dump", "cluster"}, {"version"}, {"capi"}, {"capi", "proxy"}, {"capi", "verify"},
	} {
		g.Expect(run(t.Context(), "hypershift", append(path, "--help"))).To(Succeed())
	}
}
