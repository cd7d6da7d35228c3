package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

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
