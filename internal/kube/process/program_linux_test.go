package process

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// fileBacked is how many KiB of files this process has in memory.
func fileBacked(t *testing.T) int {
	t.Helper()
	file, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		kib := 0
		if _, err := fmt.Sscanf(lines.Text(), "RssFile: %d kB", &kib); err == nil {
			return kib
		}
	}
	t.Skip("this system does not say how much memory holds files")
	return 0
}

func TestForgetProgram(t *testing.T) {
	t.Run("When the program is forgotten it should be out of memory, and go on", func(t *testing.T) {
		g := NewWithT(t)
		self, err := os.ReadFile("/proc/self/exe")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(self).NotTo(BeEmpty())
		before := fileBacked(t)
		size, err := ForgetProgram()
		g.Expect(err).NotTo(HaveOccurred())
		after := fileBacked(t)
		t.Logf("%d KiB of address space; %d KiB in memory before, %d after", size>>10, before, after)
		g.Expect(size).To(BeNumerically(">", 1<<20))
		g.Expect(after).To(BeNumerically("<", before))
		g.Expect(strings.Repeat("still here ", 2)).To(Equal("still here still here "))
	})
	for name, tc := range map[string]struct {
		line string
		want bool
	}{
		"When it is code it should be given back":                  {"00400000-04a3b000 r-xp 00000000 08:01 1234    /bin/x", true},
		"When it is constant data it should be given back":         {"00400000-04a3b000 r--p 00000000 08:01 1234    /bin/x", true},
		"When it can be written it must not be":                    {"00400000-04a3b000 rw-p 00000000 08:01 1234    /bin/x", false},
		"When it is shared it must not be":                         {"00400000-04a3b000 r--s 00000000 08:01 1234    /bin/x", false},
		"When it is another file it must not be":                   {"00400000-04a3b000 r--p 00000000 08:01 1234    /bin/y", false},
		"When the file was replaced meanwhile it must not be":      {"00400000-04a3b000 r--p 00000000 08:01 1234    /bin/x (deleted)", false},
		"When it is no file it must not be":                        {"c000000000-c000400000 rw-p 00000000 00:00 0", false},
		"When addresses make no sense it must not be":              {"04a3b000-00400000 r--p 00000000 08:01 1234    /bin/x", false},
		"When nobody may look at it (a guard page) it must not be": {"00400000-04a3b000 ---p 00000000 08:01 1234    /bin/x", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, ok := readOnly(tc.line, "/bin/x")
			NewWithT(t).Expect(ok).To(Equal(tc.want))
		})
	}
}
