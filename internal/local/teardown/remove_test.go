package teardown

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

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
