package boot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where control groups are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// unified tells whether a folder is the root of version 2 control groups.
func unified(root string) (bool, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(root, &s); err != nil {
		return false, fmt.Errorf("looking at the control groups: %w", err)
	}
	return s.Type == unix.CGROUP2_SUPER_MAGIC, nil
}

// prepareCgroups makes it possible to make control groups below that of the machine. In version 2 a group whose controllers are
// handed on must hold no process itself, so what runs already, which is this process, moves into a group of its own. Version 1 has
// no such rule.
func prepareCgroups(root string) (version string, err error) {
	v2, err := unified(root)
	if err != nil || !v2 {
		return "v1", err
	}
	return "v2", delegate(root)
}

// delegate moves all processes of a version 2 group into a child and hands its controllers on.
func delegate(root string) error {
	child := filepath.Join(root, "init.scope")
	if err := os.Mkdir(child, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making a control group: %w", err)
	}
	procs, err := os.ReadFile(filepath.Join(root, "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("reading the control group's processes: %w", err)
	}
	for _, pid := range strings.Fields(string(procs)) {
		if pid == "0" {
			continue // of another namespace, as after kubectl exec
		}
		if err := os.WriteFile(filepath.Join(child, "cgroup.procs"), []byte(pid), 0o644); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("moving process %s into a control group: %w", pid, err)
		}
	}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("reading the control group's controllers: %w", err)
	}
	var all []string
	for _, c := range strings.Fields(string(controllers)) {
		all = append(all, "+"+c)
	}
	if len(all) == 0 {
		return nil
	}
	if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte(strings.Join(all, " ")), 0o644); err != nil {
		return fmt.Errorf("handing on the controllers %s: %w", strings.TrimSpace(string(controllers)), err)
	}
	return nil
}
