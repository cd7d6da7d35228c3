package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/local/supervisor"
)

func TestStale(t *testing.T) {
	for name, tc := range map[string]struct {
		hash        string
		sameProgram bool
		want        string
	}{
		"When nothing has changed the supervisor should go on":                         {"h", true, ""},
		"When it would run something else it should be started anew":                   {"i", true, "what it runs has changed"},
		"When the checkout has got a newer program it should be started anew":          {"h", false, "it is of another version of this program"},
		"When both have changed it should be started anew, and say the one thing only": {"i", false, "what it runs has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(stale(&supervisor.Status{ConfigHash: "h"}, tc.hash, tc.sameProgram)).To(Equal(tc.want))
		})
	}
}

func TestSameContent(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		g.Expect(os.WriteFile(path, []byte(content), 0o700)).To(Succeed())
		return path
	}
	long := strings.Repeat("x", 3<<20)
	built := file("built", long)
	g.Expect(sameContent(built, file("copy", long))).To(BeTrue(), "When the copy is of the program it should be the same, whatever the times of the files are")
	g.Expect(sameContent(built, file("old", long[1:]+"y"))).To(BeFalse(), "When the program was built anew it should be another")
	g.Expect(sameContent(built, file("cut", long[1:]))).To(BeFalse(), "When the copy is cut it should be another")
	g.Expect(sameContent(built, filepath.Join(dir, "none"))).To(BeFalse(), "When there is no copy it should be another")
	_, err := sameContent(filepath.Join(dir, "none"), built)
	g.Expect(err).To(MatchError(ContainSubstring("none")), "When this program itself can't be read it should say so")
}

func TestTail(t *testing.T) {
	t.Run("When a log is longer than anybody can hold it should read its end alone", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "supervisor.log")
		g.Expect(os.WriteFile(path, []byte("only line\n"), 0o600)).To(Succeed())
		g.Expect(tail(path)).To(Equal("only line\n"))
		g.Expect(os.Truncate(path, 1<<36)).To(Succeed()) // a hole, which takes no space
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		g.Expect(err).NotTo(HaveOccurred())
		defer f.Close()
		_, err = f.WriteString("last line\n")
		g.Expect(err).NotTo(HaveOccurred())
		got := tail(path)
		g.Expect(got).To(HaveLen(tailBytes))
		g.Expect(got).To(HaveSuffix("\x00last line\n"))
	})
	t.Run("When there is none it should say so", func(t *testing.T) {
		NewWithT(t).Expect(tail(filepath.Join(t.TempDir(), "none.log"))).To(ContainSubstring("none.log"))
	})
}
