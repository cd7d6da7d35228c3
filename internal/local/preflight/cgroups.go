package preflight

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"hcp.internal/platform/internal/local/cgroup"
)

// neededControllers are those without which the kubelet doesn't start.
var neededControllers = []string{"cpu", "cpuset", "memory", "pids"}

func tryCgroups() error {
	list, err := cgroup.Mounted()
	if err != nil {
		return err
	}
	return checkCgroups(list)
}

// checkCgroups says why the mounted control groups can't be used. Version 1, version 1 with an empty version 2 beside it, and
// version 2 alone, as systemd has it, all do.
func checkCgroups(list []cgroup.Hierarchy) error {
	if len(list) == 0 {
		return fmt.Errorf("none are mounted")
	}
	unified := cgroup.Unified(list)
	var have []string
	for _, h := range list {
		have = append(have, h.Controllers...)
		if h.Version != 1 && !unified {
			continue
		}
		if err := unix.Access(h.Path, unix.W_OK); err != nil {
			return fmt.Errorf("%s is read-only", h.Path)
		}
		if h.Version == 2 {
			if err := handsDown(h.Path); err != nil {
				return err
			}
		}
	}
	for _, c := range neededControllers {
		if !slices.Contains(have, c) {
			return fmt.Errorf("the controller %s is not there", c)
		}
	}
	return nil
}

// handsDown says why a group of version 2 can't hand its controllers to groups of ours. The machine's root group always can;
// what a container sees as its root is an ordinary group, and such a one can't as long as it holds processes itself.
func handsDown(path string) error {
	if _, err := os.Stat(filepath.Join(path, "cgroup.type")); err != nil {
		return nil //nolint:nilerr // because only the machine's root group has no type
	}
	handed, err := os.ReadFile(filepath.Join(path, "cgroup.subtree_control"))
	if err != nil {
		return fmt.Errorf("reading what %s hands down: %w", path, err)
	}
	missing := slices.DeleteFunc(slices.Clone(neededControllers), func(c string) bool { return slices.Contains(strings.Fields(string(handed)), c) })
	if len(missing) == 0 {
		return nil
	}
	procs, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("reading who is in %s: %w", path, err)
	}
	if n := len(strings.Fields(string(procs))); n > 0 {
		return fmt.Errorf("%s holds %d processes itself, so it cannot hand down %s; in a container, first move them: "+
			"mkdir %[1]s/init; for p in $(cat %[1]s/cgroup.procs); do echo $p > %[1]s/init/cgroup.procs; done", path, n, strings.Join(missing, ", "))
	}
	return nil
}
