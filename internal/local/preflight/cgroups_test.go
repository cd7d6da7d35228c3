package preflight

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/local/cgroup"
)

// unified makes a folder that looks like the mount point of version 2: of a machine, or with a type of a container.
func unified(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCheckCgroups(t *testing.T) {
	all := []string{"cpuset", "cpu", "io", "memory", "hugetlb", "pids", "rdma", "misc"}
	machine := unified(t, map[string]string{"cgroup.procs": "1\n2\n", "cgroup.subtree_control": "memory pids\n"})
	crowded := unified(t, map[string]string{"cgroup.type": "domain\n", "cgroup.procs": "1\n2\n", "cgroup.subtree_control": "\n"})
	empty := unified(t, map[string]string{"cgroup.type": "domain\n", "cgroup.procs": "", "cgroup.subtree_control": "\n"})
	prepared := unified(t, map[string]string{"cgroup.type": "domain\n", "cgroup.procs": "1\n", "cgroup.subtree_control": "cpuset cpu memory pids\n"})
	for name, tc := range map[string]struct {
		list []cgroup.Hierarchy
		want string // empty: usable
	}{
		"When systemd has version 2 alone it should be usable": {
			[]cgroup.Hierarchy{{Path: machine, Version: 2, Controllers: all}}, ""},
		"When version 2 lacks a controller it should name it": {
			[]cgroup.Hierarchy{{Path: machine, Version: 2, Controllers: []string{"cpu", "cpuset", "memory"}}}, "the controller pids is not there"},
		"When version 1 has all and version 2 is empty it should be usable": {
			[]cgroup.Hierarchy{{Path: machine, Version: 1, Controllers: neededControllers}, {Path: "/nowhere", Version: 2}}, ""},
		"When a container's root holds processes it should say how to move them": {
			[]cgroup.Hierarchy{{Path: crowded, Version: 2, Controllers: all}}, "holds 2 processes itself, so it cannot hand down cpu, cpuset, memory, pids; in a container, first move them: mkdir " + crowded + "/init"},
		"When a container's root is empty it should be usable": {
			[]cgroup.Hierarchy{{Path: empty, Version: 2, Controllers: all}}, ""},
		"When a container's root hands everything down already it should be usable": {
			[]cgroup.Hierarchy{{Path: prepared, Version: 2, Controllers: all}}, ""},
		"When the mount can't be written it should say so": {
			[]cgroup.Hierarchy{{Path: "/nowhere", Version: 2, Controllers: all}}, "/nowhere is read-only"},
		"When nothing is mounted it should say so": {nil, "none are mounted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			err := checkCgroups(tc.list)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			}
		})
	}
}
