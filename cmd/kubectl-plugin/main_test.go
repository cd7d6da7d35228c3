package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestMain lets this test's program be the launcher, and what that runs, by the names that it is called by.
func TestMain(m *testing.M) {
	switch self, _ := os.Executable(); {
	case filepath.Base(self) == program:
		input, _ := io.ReadAll(os.Stdin)
		fmt.Printf("%s %s", strings.Join(os.Args, " "), input)
		os.Exit(7)
	case filepath.Base(self) == "kubectl-package":
		main()
	}
	os.Exit(m.Run())
}

func TestLauncher(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	copyTo := func(path string) {
		self, err := os.Executable()
		g.Expect(err).NotTo(HaveOccurred())
		data, err := os.ReadFile(self)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(path, data, 0o700)).To(Succeed()) // the test runs it
	}
	plugin := filepath.Join(dir, "kubectl-package")
	copyTo(plugin)
	call := func(path string) (string, int) {
		cmd := exec.CommandContext(t.Context(), path, "tree", "a b")
		cmd.Stdin = strings.NewReader("input")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		g.Expect(errors.As(err, &exit)).To(BeTrue(), "%v: %s", err, out)
		return string(out), exit.ExitCode()
	}

	t.Run("When the program is missing it should say where it looks for it", func(t *testing.T) {
		out, code := call(plugin)
		NewWithT(t).Expect(out).To(And(ContainSubstring(filepath.Join(dir, "hypershift")), ContainSubstring("has to be in the folder")))
		NewWithT(t).Expect(code).To(Equal(failed))
	})
	copyTo(filepath.Join(dir, program))
	t.Run("When it is called it should run the program beside it under its own name, with its arguments, input and exit code", func(t *testing.T) {
		out, code := call(plugin)
		NewWithT(t).Expect(out).To(Equal("kubectl-package tree a b input"))
		NewWithT(t).Expect(code).To(Equal(7))
	})
	t.Run("When it is called through a link elsewhere it should find the program of its own folder", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "kubectl-package")
		NewWithT(t).Expect(os.Symlink(plugin, link)).To(Succeed())
		out, _ := call(link)
		NewWithT(t).Expect(out).To(Equal("kubectl-package tree a b input"))
	})
	t.Run("When it is a program of Windows it should run one", func(t *testing.T) {
		NewWithT(t).Expect(beside(filepath.Join(dir, "kubectl-package.EXE"))).To(Equal(filepath.Join(dir, "hypershift.exe")))
	})
}
