package teardown

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// mountedEnv names a state folder that this test binary, in a mount namespace of its own, makes a mount point and removes.
const mountedEnv = "TEARDOWN_TEST_MOUNTED"

func TestMountPoint(t *testing.T) {
	if dir := os.Getenv(mountedEnv); dir != "" {
		g := NewWithT(t)
		g.Expect(unix.Mount("tmpfs", dir, "tmpfs", 0, "")).To(Succeed())
		in := Input{Last: filepath.Join(dir, ".marker"), Report: func(string) {}}
		g.Expect(os.MkdirAll(filepath.Join(dir, "etcd", "member"), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(in.Last, nil, 0o600)).To(Succeed())
		for range 2 { // again: there is nothing left to do
			g.Expect(in.removeState(dir, os.RemoveAll)).To(Succeed())
			g.Expect(os.ReadDir(dir)).To(BeEmpty())
		}
		return
	}
	t.Run("When the state folder is a mount point it should be emptied and stay", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root to mount")
		}
		self, err := os.Executable()
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		cmd := exec.Command("unshare", "--mount", self, "-test.run=^TestMountPoint$")
		cmd.Env = append(os.Environ(), mountedEnv+"="+t.TempDir())
		out, err := cmd.CombinedOutput()
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(out))
	})
	t.Run("When something in the folder is busy it should fail", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(dir, "busy"), nil, 0o600)).To(Succeed())
		err := Input{}.removeState(dir, func(path string) error { return &os.PathError{Op: "unlinkat", Path: path, Err: unix.EBUSY} })
		g.Expect(err).To(MatchError(unix.EBUSY))
	})
}

func TestRemoveFolder(t *testing.T) {
	fill := func(t *testing.T) (dir, last string) {
		t.Helper()
		g := NewWithT(t)
		dir = filepath.Join(t.TempDir(), "state")
		g.Expect(os.MkdirAll(filepath.Join(dir, "etcd", "member"), 0o700)).To(Succeed())
		for _, name := range []string{".marker", "config.json", "etcd/member/wal", "~"} {
			g.Expect(os.WriteFile(filepath.Join(dir, name), nil, 0o600)).To(Succeed())
		}
		return dir, filepath.Join(dir, ".marker")
	}
	t.Run("When a folder is removed nothing should be left", func(t *testing.T) {
		g := NewWithT(t)
		dir, last := fill(t)
		g.Expect(removeFolder(dir, last, os.RemoveAll)).To(Succeed())
		g.Expect(dir).NotTo(BeAnExistingFile())
		g.Expect(removeFolder(dir, last, os.RemoveAll)).To(Succeed(), "again")
	})
	t.Run("When the folder is a link only that should go", func(t *testing.T) {
		g := NewWithT(t)
		dir, last := fill(t)
		link := filepath.Join(t.TempDir(), "link")
		g.Expect(os.Symlink(dir, link)).To(Succeed())
		g.Expect(removeFolder(link, filepath.Join(link, ".marker"), os.RemoveAll)).To(Succeed())
		g.Expect(link).NotTo(BeAnExistingFile())
		g.Expect(last).To(BeAnExistingFile())
	})
	t.Run("When it is interrupted anywhere the last file should still be there", func(t *testing.T) {
		g := NewWithT(t)
		interrupted := errors.New("interrupted")
		for at := range 4 {
			dir, last := fill(t)
			n := 0
			err := removeFolder(dir, last, func(path string) error {
				g.Expect(last).To(BeAnExistingFile())
				if n++; n > at {
					return interrupted
				}
				return os.RemoveAll(path)
			})
			g.Expect(err).To(MatchError(interrupted))
			g.Expect(last).To(BeAnExistingFile())
		}
	})
}
