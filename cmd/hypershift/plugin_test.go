package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/testenv"
)

// asProgram is the variable that makes the test binary be the program, with the name and arguments that it holds, one a line.
const asProgram = "HYPERSHIFT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if line := os.Getenv(asProgram); line != "" {
		os.Args = strings.Split(line, "\n")
		main()
		os.Exit(0)
	}
	os.Exit(testenv.Main(m))
}

// TestPlugin runs the plugin of kubectl as a process: what it prints where, and its exit codes.
func TestPlugin(t *testing.T) {
	const source = "../../config/examples/packages/web"
	fresh := t.TempDir()
	NewWithT(t).Expect(os.CopyFS(fresh, os.DirFS(source))).To(Succeed())
	for name, tc := range map[string]struct {
		args   []string
		code   int
		stdout string // the beginning of it; "" wants none
		stderr string
	}{
		"When a package is right it should succeed":             {[]string{"validate", source}, 0, "Package validated successfully!", ""},
		"When a package is built it should succeed":             {[]string{"build", source}, 0, "Package built successfully!", ""},
		"When a tree is asked for it should print it":           {[]string{"tree", source}, 0, "web\nPackage default/web\n", ""},
		"When the version is asked for it should tell it":       {[]string{"version"}, 0, "pko\t", ""},
		"When it is asked as a flag it should tell it, too":     {[]string{"--version"}, 0, "kubectl-package version v", ""},
		"When a shell wants completion it should get it":        {[]string{"completion", "bash"}, 0, "# bash completion", ""},
		"When help is asked for it should help":                 {[]string{"--help"}, 0, "Build, check, install and follow packages", ""},
		"When there is no package it should fail":               {[]string{"validate", "/does/not/exist"}, 1, "", "Error: "},
		"When a command is unknown it should fail":              {[]string{"frobnicate"}, 1, "", `Error: unknown command "frobnicate" for "kubectl package"`},
		"When a flag is unknown it should fail":                 {[]string{"build", source, "--frobnicate"}, 1, "", "Error: unknown flag: --frobnicate"},
		"When arguments are missing it should fail":             {[]string{"repository", "add", "a", "b"}, 1, "", "Error: requires at least 3 arg(s), only received 2"},
		"When a format is unknown it should fail":               {[]string{"rollout", "history", "package/x", "-o", "x"}, 1, "", `Error: invalid output format: "x"`},
		"When there is no cluster it should fail":               {[]string{"clustertree", "package/x", "-n", "y", "--kubeconfig", "/does/not/exist"}, 1, "", "Error: "},
		"When a package is updated it should succeed":           {[]string{"update", fresh}, 0, "Package updated successfully!", ""},
		"When a folder is there already kickstart should fail":  {[]string{"kickstart", source, "-f", "-"}, 1, "", "Error: kickstarting package: package folder already exists: "},
		"When a repository can't be read it should fail":        {[]string{"repo", "push", "/does/not/exist", "localhost/a:b"}, 1, "", "Error: read from file: "},
		"When a rollout's namespace is missing it should fail":  {[]string{"clustertree", "package/x"}, 1, "", "Error: --namespace is required"},
		"When something else is paused it should fail":          {[]string{"pause", "pod/x"}, 1, "", "Error: invalid resource name: expected"},
		"When a name is no name it should fail":                 {[]string{"rollout", "status", "a/b/c"}, 1, "", "Error: arguments invalid: "},
		"When a fleet's rollout is planned it needs a manifest": {[]string{"rollout", "plan"}, 1, "", "Error: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var stdout, stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), asProgram+"="+strings.Join(append([]string{"kubectl-package"}, tc.args...), "\n"), "KUBECONFIG=/does/not/exist")
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			code := 0
			if exit, failed := errors.AsType[*exec.ExitError](cmd.Run()); failed {
				code = exit.ExitCode()
			}
			g.Expect(code).To(Equal(tc.code), stderr.String())
			g.Expect(stdout.String()).To(HavePrefix(tc.stdout))
			g.Expect(stderr.String()).To(HavePrefix(tc.stderr))
			if tc.stdout == "" {
				g.Expect(stdout.String()).To(BeEmpty())
			}
			if tc.stderr == "" {
				g.Expect(stderr.String()).To(BeEmpty())
			}
		})
	}
}

func TestCompletionOfPlugin(t *testing.T) {
	t.Run("When kubectl asks what may follow it should get the plugin's commands", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), asProgram+"=kubectl_complete-package\nclus")
		out, err := cmd.Output()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(out)).To(And(HavePrefix("clustertree\t"), ContainSubstring(":4")))
	})
}
