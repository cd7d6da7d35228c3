package cgroup

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const hybrid = `30 1 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
broken line
`

func TestParse(t *testing.T) {
	t.Run("When version 1 is mounted with an empty version 2 beside it should use version 1", func(t *testing.T) {
		g := NewWithT(t)
		list := parse(hybrid)
		g.Expect(list).To(Equal([]Hierarchy{
			{Path: "/sys/fs/cgroup/cpu,cpuacct", Version: 1, Controllers: []string{"cpu", "cpuacct"}},
			{Path: "/sys/fs/cgroup/systemd", Version: 1, Controllers: []string{"name=systemd"}},
			{Path: "/sys/fs/cgroup/unified", Version: 2},
		}))
		g.Expect(Unified(list)).To(BeFalse())
		g.Expect(useful(list)).To(HaveLen(2))
	})
	t.Run("When only version 2 is mounted it should use that", func(t *testing.T) {
		g := NewWithT(t)
		list := parse("30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
		g.Expect(Unified(list)).To(BeTrue())
		g.Expect(useful(list)).To(HaveLen(1))
	})
}

// group makes folders that look like a group of version 2.
func group(t *testing.T, dir, procs string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(procs), 0o644)).To(Succeed())
}

func TestProcesses(t *testing.T) {
	t.Run("When processes are in groups below, and in several hierarchies, it should list each once", func(t *testing.T) {
		g := NewWithT(t)
		a, b := t.TempDir(), t.TempDir()
		group(t, filepath.Join(a, "x"), "")
		group(t, filepath.Join(a, "x", "y"), "7\n3\n")
		group(t, filepath.Join(b, "x"), "3\n")
		group(t, filepath.Join(b, "other"), "9\n")
		list := []Hierarchy{{Path: a, Version: 1}, {Path: b, Version: 1}, {Path: t.TempDir(), Version: 1}}
		g.Expect(Processes(list, "x")).To(Equal([]int{3, 7}))
	})
}

func TestCreate(t *testing.T) {
	t.Run("When version 1 has a cpuset it should fill in every level, for an empty one takes no process", func(t *testing.T) {
		g := NewWithT(t)
		root := t.TempDir()
		// The kernel makes these files with a folder; here they must be there before.
		for _, d := range []string{"", "a", "a/b"} {
			g.Expect(os.MkdirAll(filepath.Join(root, d), 0o755)).To(Succeed())
			for f, v := range map[string]string{"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"} {
				if d != "" {
					v = "\n"
				}
				g.Expect(os.WriteFile(filepath.Join(root, d, f), []byte(v), 0o644)).To(Succeed())
			}
		}
		g.Expect(Create([]Hierarchy{{Path: root, Version: 1, Controllers: []string{"cpuset"}}}, "a/b")).To(Succeed())
		g.Expect(os.ReadFile(filepath.Join(root, "a", "b", "cpuset.cpus"))).To(BeEquivalentTo("0-1\n"))
		g.Expect(os.ReadFile(filepath.Join(root, "a", "cpuset.mems"))).To(BeEquivalentTo("0\n"))
	})
}

func TestRemove(t *testing.T) {
	t.Run("When groups are nested it should remove the inner ones first", func(t *testing.T) {
		g := NewWithT(t)
		root := t.TempDir()
		g.Expect(os.MkdirAll(filepath.Join(root, "x", "y", "z"), 0o755)).To(Succeed())
		list := []Hierarchy{{Path: root, Version: 2}}
		g.Expect(Remove(list, "x")).To(Equal(3))
		g.Expect(filepath.Join(root, "x")).NotTo(BeADirectory())
		g.Expect(Remove(list, "x")).To(Equal(0))
	})
}

func TestWeigh(t *testing.T) {
	t.Run("When pods and the node compete it should weigh the node in the unit of the hierarchy's version", func(t *testing.T) {
		for _, c := range []struct {
			hierarchy   Hierarchy
			file, value string
		}{
			{Hierarchy{Version: 1, Controllers: []string{"cpu", "cpuacct"}}, "cpu.shares", "10240"},
			{Hierarchy{Version: 2, Controllers: []string{"cpu", "memory"}}, "cpu.weight", "1000"},
		} {
			g := NewWithT(t)
			c.hierarchy.Path = t.TempDir()
			g.Expect(os.Mkdir(filepath.Join(c.hierarchy.Path, "node"), 0o755)).To(Succeed())
			g.Expect(Weigh([]Hierarchy{c.hierarchy}, "node", 10)).To(Succeed())
			g.Expect(os.ReadFile(filepath.Join(c.hierarchy.Path, "node", c.file))).To(BeEquivalentTo(c.value))
		}
	})
	t.Run("When the hierarchy has no processors to share it should leave it alone", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		g.Expect(Weigh([]Hierarchy{{Path: dir, Version: 1, Controllers: []string{"memory"}}}, "node", 10)).To(Succeed())
		g.Expect(os.ReadDir(dir)).To(BeEmpty())
	})
}

func TestUsed(t *testing.T) {
	group := func(t *testing.T, version int, controllers []string, file, content string) []Hierarchy {
		dir := t.TempDir()
		g := NewWithT(t)
		g.Expect(os.Mkdir(filepath.Join(dir, "node"), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, "node", file), []byte(content), 0o644)).To(Succeed())
		return []Hierarchy{{Path: dir, Version: version, Controllers: controllers}}
	}
	t.Run("When a hierarchy of version 1 counts processor time it should read it", func(t *testing.T) {
		NewWithT(t).Expect(Used(group(t, 1, []string{"cpuacct"}, "cpuacct.usage", "1500000000\n"), "node")).To(Equal(1500 * time.Millisecond))
	})
	t.Run("When the hierarchy is of version 2 it should read it", func(t *testing.T) {
		NewWithT(t).Expect(Used(group(t, 2, nil, "cpu.stat", "usage_usec 1500000\nuser_usec 1000000\n"), "node")).To(Equal(1500 * time.Millisecond))
	})
	t.Run("When nothing counts processor time it should say so", func(t *testing.T) {
		_, err := Used(group(t, 1, []string{"memory"}, "memory.stat", ""), "node")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no control group hierarchy")))
	})
	t.Run("When the group is gone it should say so", func(t *testing.T) {
		_, err := Used(group(t, 2, nil, "cpu.stat", ""), "other")
		NewWithT(t).Expect(err).To(MatchError(os.ErrNotExist))
	})
}
