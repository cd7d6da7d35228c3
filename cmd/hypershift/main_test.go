package main

import (
	"os"
	"path/filepath"
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

func TestDeprecatedFlag(t *testing.T) {
	t.Run("When manifests are rendered with a deprecated flag what is told of it should not be among them", func(t *testing.T) {
		g := NewWithT(t)
		file, err := os.Create(filepath.Join(t.TempDir(), "manifests"))
		g.Expect(err).NotTo(HaveOccurred())
		stdout := os.Stdout
		os.Stdout = file
		err = run(t.Context(), "hypershift", []string{"create", "nodepool", "none", "--render", "--name", "demo", "--cluster-name", "demo", "--node-count", "1",
			"--release-image", "registry.example.com/release:1.36.3"})
		os.Stdout = stdout
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(file.Close()).To(Succeed())
		raw, err := os.ReadFile(file.Name())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(And(ContainSubstring("kind: NodePool"), Not(ContainSubstring("deprecated"))))
	})
}
