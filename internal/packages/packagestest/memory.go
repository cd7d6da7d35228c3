package packagestest

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// ExpectMemoryBelow fails when this process has ever had more than limit bytes in memory.
func ExpectMemoryBelow(t testing.TB, limit int64) {
	t.Helper()
	file, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skipf("reading the memory of this process: %v", err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	for lines := bufio.NewScanner(file); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:")
		if !ok {
			continue
		}
		var kib int64
		if _, err := fmt.Sscanf(strings.TrimSpace(rest), "%d kB", &kib); err != nil {
			t.Fatalf("reading %q: %v", rest, err)
		}
		t.Logf("at most %d MiB of memory", kib>>10)
		if kib<<10 > limit {
			t.Errorf("used %d MiB of memory, at most %d allowed", kib>>10, limit>>20)
		}
	}
}
