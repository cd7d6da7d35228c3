package debian

import (
	"os"
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
