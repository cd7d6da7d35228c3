package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRequireStatic(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell on this machine to be a dynamic program")
	}

	t.Run("When a program needs a C library it should name it and say how to build it", func(t *testing.T) {
		g := NewWithT(t)
		err := requireStatic(nil, []File{{Path: "/etc/x", Data: []byte("x")}, {Path: "/usr/bin/sh", Source: shell}})
		g.Expect(err).To(MatchError(ErrDynamic))
		g.Expect(err).To(MatchError(And(ContainSubstring(shell), ContainSubstring("CGO_ENABLED=0"))))
		_, err = Pause(Binaries{Pause: shell})
		g.Expect(err).To(MatchError(ErrDynamic))
	})
	t.Run("When a file is no program it should not mind", func(t *testing.T) {
		NewWithT(t).Expect(requireStatic([]File{{Source: text}})).To(Succeed())
	})
	t.Run("When a file is missing it should say which", func(t *testing.T) {
		NewWithT(t).Expect(requireStatic([]File{{Source: filepath.Join(dir, "none")}})).To(MatchError(ContainSubstring("none")))
	})
	t.Run("When this test is linked statically it should accept it", func(t *testing.T) {
		if checkStatic(self) != nil {
			t.Skip("the race detector links dynamically")
		}
		NewWithT(t).Expect(requireStatic([]File{{Source: self}})).To(Succeed())
	})
}
