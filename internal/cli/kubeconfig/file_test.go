package kubeconfig

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/cli/outputfile"
)

func TestWritePrivate(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "demo.kubeconfig")
	g.Expect(os.WriteFile(path, []byte("an old and longer one, for everybody"), 0o600)).To(Succeed())
	g.Expect(os.Chmod(path, 0o644)).To(Succeed())
	g.Expect(outputfile.Write(path, []byte("new"), outputfile.Private)).To(Succeed())
	info, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode()).To(Equal(fs.FileMode(0o600)))
	g.Expect(os.ReadFile(path)).To(BeEquivalentTo("new"))
	left, err := os.ReadDir(filepath.Dir(path))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(HaveLen(1))
	g.Expect(outputfile.Write(filepath.Join(path, "below"), nil, outputfile.Private)).To(MatchError(ContainSubstring("writing ")))
}

func TestWritePrivateThroughLinks(t *testing.T) {
	t.Run("When the file is a link it should stay one, and what it leads to be written", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		g.Expect(os.Mkdir(filepath.Join(dir, "safe"), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, "safe", "real"), []byte("old"), 0o644)).To(Succeed())
		g.Expect(os.Symlink(filepath.Join("safe", "real"), filepath.Join(dir, "link"))).To(Succeed())
		g.Expect(outputfile.Write(filepath.Join(dir, "link"), []byte("new"), outputfile.Private)).To(Succeed())
		g.Expect(os.Readlink(filepath.Join(dir, "link"))).To(Equal("safe/real"))
		g.Expect(os.ReadFile(filepath.Join(dir, "safe", "real"))).To(BeEquivalentTo("new"))
		info, err := os.Stat(filepath.Join(dir, "safe", "real"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode()).To(Equal(fs.FileMode(0o600)))
	})
	t.Run("When the file is a link to none yet it should stay one, and that be made", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		g.Expect(os.Symlink("later", filepath.Join(dir, "link"))).To(Succeed())
		g.Expect(outputfile.Write(filepath.Join(dir, "link"), []byte("new"), outputfile.Private)).To(Succeed())
		g.Expect(os.Readlink(filepath.Join(dir, "link"))).To(Equal("later"))
		g.Expect(os.ReadFile(filepath.Join(dir, "later"))).To(BeEquivalentTo("new"))
	})
	t.Run("When links lead in a circle it should say so", func(t *testing.T) {
		g := NewWithT(t)
		link := filepath.Join(t.TempDir(), "link")
		g.Expect(os.Symlink("link", link)).To(Succeed())
		g.Expect(outputfile.Write(link, nil, outputfile.Private)).To(MatchError(ContainSubstring("writing " + link)))
	})
}

func TestReadByOthers(t *testing.T) {
	g := NewWithT(t)
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	g.Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	for mode, want := range map[fs.FileMode]bool{0o600: false, 0o640: true, 0o604: true, 0o644: true} {
		g.Expect(f.Chmod(mode)).To(Succeed())
		got, open := readByOthers(f)
		g.Expect(open).To(Equal(want), mode.String())
		g.Expect(got).To(Equal(mode))
	}
	_, open := readByOthers(&bytes.Buffer{})
	g.Expect(open).To(BeFalse())
}
