package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestCalled(t *testing.T) {
	for name, tc := range map[string]struct{ program, want string }{
		"When kubectl calls the plugin it should be that":            {"kubectl-package", "kubectl-package"},
		"When kubectl calls the plugin on Windows it should be that": {"kubectl-package.exe", "kubectl-package"},
		"When Windows writes names in capitals it should be that":    {"KUBECTL-PACKAGE.EXE", "kubectl-package"},
		"When it completes on Windows it should do that":             {"kubectl_complete-package.exe", "kubectl_complete-package"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(called(tc.program)).To(Equal(tc.want))
		})
	}
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
