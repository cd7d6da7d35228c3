package outputfile

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	there, link := filepath.Join(dir, "there"), filepath.Join(dir, "link")
	NewWithT(t).Expect(os.WriteFile(there, []byte("content"), 0o644)).To(Succeed())
	NewWithT(t).Expect(os.Symlink("behind", link)).To(Succeed())
	for name, tc := range map[string]struct{ path, wrong string }{
		"When there is no such file it should be fine":                {path: filepath.Join(dir, "new")},
		"When a file is there it should be fine":                      {path: there},
		"When a link leads to a file that isn't there it may be made": {path: link},
		"When it is the standard output it should be fine":            {path: "/dev/stdout"},
		"When it is a device it should be fine":                       {path: os.DevNull},
		"When it is a folder it should say so":                        {path: dir, wrong: "name a file in it"},
		"When its folder is missing it should say so":                 {path: filepath.Join(dir, "none", "file"), wrong: "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := Check(tc.path)
			if tc.wrong == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wrong)))
			}
			left, err := os.ReadDir(dir)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(left).To(HaveLen(2), "nothing is made")
			g.Expect(os.ReadFile(there)).To(BeEquivalentTo("content"))
		})
	}
}
