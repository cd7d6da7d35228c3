package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestReadBounds(t *testing.T) {
	read := func(cpus, memory string) (Bounds, error) {
		return readBounds(func(name string) string {
			return map[string]string{"MACHINE_CPUS": cpus, "MACHINE_MEMORY": memory}[name]
		})
	}
	t.Run("When nothing is said there should be no bounds", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(read("", "")).To(Equal(Bounds{}))
		g.Expect(Bounds{}.show()).To(Succeed())
	})
	t.Run("When both are given it should take them", func(t *testing.T) {
		NewWithT(t).Expect(read("2", "1073741824")).To(Equal(Bounds{CPUs: 2, Memory: 1 << 30}))
	})
	for _, tc := range [][3]string{{"0", "", "MACHINE_CPUS"}, {"-1", "", "MACHINE_CPUS"}, {"two", "", "MACHINE_CPUS"}, {"99999", "", "MACHINE_CPUS"},
		{"", "1Gi", "MACHINE_MEMORY"}, {"", "1", "MACHINE_MEMORY"}} {
		t.Run(fmt.Sprintf("When it is %q and %q it should refuse", tc[0], tc[1]), func(t *testing.T) {
			_, err := read(tc[0], tc[1])
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc[2])))
		})
	}
}

func TestBoundMemory(t *testing.T) {
	g := NewWithT(t)
	const host = "MemTotal:       24682500 kB\nMemFree:         3000000 kB\nMemAvailable:   20000000 kB\nBuffers:             100 kB\nCached:          9000000 kB\nHugePages_Total:       0\n"
	g.Expect(string(boundMemory([]byte(host), 2<<30))).To(Equal(
		"MemTotal:       2097152 kB\nMemFree:         2097152 kB\nMemAvailable:   2097152 kB\nBuffers:             100 kB\nCached:          2097152 kB\nHugePages_Total:       0\n"))
	g.Expect(string(boundMemory([]byte(host), 1<<40))).To(Equal(host), "more than there is is no bound")
}

func TestBoundCPUs(t *testing.T) {
	from := t.TempDir()
	for i := range 4 {
		dir := filepath.Join(from, fmt.Sprint("cpu", i), "topology")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "core_id"), fmt.Appendln(nil, i/2), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path ...string) string {
		data, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	t.Run("When there are more it should show the first", func(t *testing.T) {
		g, to := NewWithT(t), t.TempDir()
		g.Expect(boundCPUs(from, to, 3)).To(BeTrue())
		g.Expect(read(to, "online")).To(Equal("0-2\n"))
		g.Expect(read(to, "cpu2/topology/core_id")).To(Equal("1\n"))
		g.Expect(read(to, "cpu2/topology/physical_package_id")).To(Equal("0\n"), "what the kernel does not say")
		found, err := filepath.Glob(filepath.Join(to, "cpu[0-9]*"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(HaveLen(3))
		g.Expect(boundCPUs(from, t.TempDir(), 1)).To(BeTrue())
	})
	t.Run("When there are no more it should leave them", func(t *testing.T) {
		g, to := NewWithT(t), t.TempDir()
		g.Expect(boundCPUs(from, to, 4)).To(BeFalse())
		g.Expect(boundCPUs(from, to, 9)).To(BeFalse())
		entries, err := os.ReadDir(to)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(BeEmpty())
	})
}
