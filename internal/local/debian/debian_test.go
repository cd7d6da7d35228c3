package debian

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestParseDepends(t *testing.T) {
	out := `iptables
  Depends: libip4tc2
  PreDepends: libc6
libpam0g
 |Depends: debconf
  Depends: <debconf-2.0>
    cdebconf
    debconf
  Depends: libaudit1:any
awk-user
 |Depends: <awk>
  Depends: mawk
  Depends: <only-virtual>
    original-awk
`
	NewWithT(t).Expect(parseDepends(out)).To(Equal([]string{"libip4tc2", "libc6", "debconf", "libaudit1", "mawk"}),
		"When there are alternatives it should take the first real one of each group")
}

func TestClosure(t *testing.T) {
	t.Run("When a name is none of a package it should refuse it before it reaches a command line", func(t *testing.T) {
		_, err := closure(t.Context(), []string{"--option"}, (&Cache{}).apt)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no name of a package")))
	})
}

func TestFiles(t *testing.T) {
	t.Run("When packages name old places it should move their files below /usr and leave out what is skipped", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		for _, f := range []string{"bin/bash", "lib/x86_64-linux-gnu/libc.so.6", "usr/share/doc/bash/README", "etc/protocols"} {
			g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(dir, f), nil, 0o755)).To(Succeed())
		}
		g.Expect(os.Symlink("bash", filepath.Join(dir, "bin/rbash"))).To(Succeed())
		files, err := Files([]Package{{Name: "x", dir: dir}}, func(p string) bool { return p == "/usr/share/doc/bash/README" })
		g.Expect(err).NotTo(HaveOccurred())
		var paths []string
		for _, f := range files {
			if !f.Dir {
				paths = append(paths, f.Path+" "+f.Link)
			}
		}
		g.Expect(paths).To(ContainElements("/usr/bin/bash ", "/usr/bin/rbash bash", "/usr/lib/x86_64-linux-gnu/libc.so.6 ", "/etc/protocols ", "/bin usr/bin", "/lib64 usr/lib64"))
		g.Expect(paths).NotTo(ContainElement(ContainSubstring("README")))
	})
}

func TestCache(t *testing.T) {
	// filled is a cache with one package, as a download leaves it.
	filled := func(t *testing.T) (*Cache, index) {
		t.Helper()
		g := NewWithT(t)
		if _, err := exec.LookPath("dpkg-deb"); err != nil {
			t.Skip("needs dpkg-deb")
		}
		c := &Cache{Dir: t.TempDir(), Say: func(string, ...any) {}}
		idx := index{Wanted: []string{"x"}, Packages: []Package{{Name: "x", File: "x_1_all.deb"}}}
		source := t.TempDir()
		for name, content := range map[string]string{"DEBIAN/control": "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n", "usr/bin/x": "program"} {
			g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(source, name)), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(source, name), []byte(content), 0o644)).To(Succeed())
		}
		g.Expect(os.MkdirAll(filepath.Join(c.Dir, "archives"), 0o755)).To(Succeed())
		out, err := exec.Command("dpkg-deb", "--root-owner-group", "--build", source, c.archive(idx.Packages[0])).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		info, err := os.Stat(c.archive(idx.Packages[0]))
		g.Expect(err).NotTo(HaveOccurred())
		idx.Packages[0].Size = info.Size()
		g.Expect(c.write("set", idx)).To(Succeed())
		return c, idx
	}
	t.Run("When everything is there it should be unpacked without a network, once", func(t *testing.T) {
		g := NewWithT(t)
		c, idx := filled(t)
		for range 2 {
			got, err := c.Get(t.Context(), "set", idx.Wanted)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.ReadFile(filepath.Join(got[0].dir, "usr/bin/x"))).To(BeEquivalentTo("program"))
			g.Expect(os.WriteFile(c.archive(idx.Packages[0]), make([]byte, idx.Packages[0].Size), 0o644)).To(Succeed(), "not read again")
			entries, err := os.ReadDir(filepath.Join(c.Dir, "unpacked"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(entries).To(HaveLen(1))
		}
	})
	t.Run("When an archive has lost content it should not be trusted", func(t *testing.T) {
		g := NewWithT(t)
		c, _ := filled(t)
		idx, err := c.read("set")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.complete(idx)).To(BeTrue())
		g.Expect(os.Truncate(c.archive(idx.Packages[0]), idx.Packages[0].Size-1)).To(Succeed())
		g.Expect(c.complete(idx)).To(BeFalse())
	})
	t.Run("When an older version wrote no sizes down it should trust archives that have content", func(t *testing.T) {
		g := NewWithT(t)
		c, idx := filled(t)
		idx.Packages[0].Size = 0
		g.Expect(c.complete(idx)).To(BeTrue())
		g.Expect(os.Truncate(c.archive(idx.Packages[0]), 0)).To(Succeed())
		g.Expect(c.complete(idx)).To(BeFalse())
	})
	t.Run("When one package can't be unpacked none should look as if it were", func(t *testing.T) {
		g := NewWithT(t)
		c, idx := filled(t)
		idx.Packages = append(idx.Packages, Package{Name: "y", File: "y_1_all.deb"})
		g.Expect(os.WriteFile(c.archive(idx.Packages[1]), []byte("no archive"), 0o644)).To(Succeed())
		g.Expect(c.write("set", idx)).To(Succeed())
		_, err := c.Get(t.Context(), "set", idx.Wanted)
		g.Expect(err).To(MatchError(ContainSubstring("unpacking y_1_all.deb")))
		entries, err := os.ReadDir(filepath.Join(c.Dir, "unpacked"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(BeEmpty())
	})
}
