//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// machine is what a local cluster touches outside its state folder.
type machine struct {
	links, mounts, namespaces, cgroups []string
}

func machineState(t testing.TB) machine {
	t.Helper()
	return machine{
		links:      lines(t, "ip", "-o", "link"),
		mounts:     mounts(t),
		namespaces: list("/var/run/netns/*"),
		cgroups:    list("/sys/fs/cgroup/*/kubepods*", "/sys/fs/cgroup/kubepods*"),
	}
}

func lines(t testing.TB, name string, args ...string) []string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 1 {
			names = append(names, strings.TrimSuffix(fields[1], ":"))
		}
	}
	slices.Sort(names)
	return names
}

func mounts(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	var points []string
	for line := range strings.Lines(string(data)) {
		points = append(points, strings.Fields(line)[1])
	}
	slices.Sort(points)
	return points
}

func list(patterns ...string) []string {
	var found []string
	for _, p := range patterns {
		m, _ := filepath.Glob(p)
		found = append(found, m...)
	}
	return found
}

// nothingLeft compares the machine with what it was before up, and looks for processes that mention the state folder.
func nothingLeft(t *testing.T, before machine) {
	eventually(t, 30*time.Second, "a clean machine", func() error {
		if err := machineState(t).isNoMoreThan(before); err != nil {
			return err
		}
		if left := processes(); len(left) > 0 {
			return fmt.Errorf("processes are left: %s", strings.Join(left, "; "))
		}
		if _, err := os.Stat(stateDir); err == nil {
			return fmt.Errorf("%s is left", stateDir)
		}
		return nil
	})
}

// pairs are what two states of a machine have of each kind.
func pairs(before, after machine) map[string][2][]string {
	return map[string][2][]string{
		"links": {before.links, after.links}, "mounts": {before.mounts, after.mounts},
		"network namespaces": {before.namespaces, after.namespaces}, "cgroups": {before.cgroups, after.cgroups},
	}
}

// isNoMoreThan names something that was not there before.
func (after machine) isNoMoreThan(before machine) error {
	for what, pair := range pairs(before, after) {
		for _, name := range pair[1] {
			if !slices.Contains(pair[0], name) {
				return fmt.Errorf("%s: %s is left", what, name)
			}
		}
	}
	return nil
}

func processes() []string {
	var found []string
	for _, file := range list("/proc/[0-9]*/cmdline") {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if cmdline := strings.ReplaceAll(string(data), "\x00", " "); strings.Contains(cmdline, stateDir+"/") {
			found = append(found, cmdline)
		}
	}
	return found
}

// nodeProcess returns the id of a program of the management cluster's node, 0 when it does not run. Workers have programs of the same names.
func nodeProcess(t testing.TB, program string) int {
	t.Helper()
	for _, file := range list("/proc/[0-9]*/cmdline") {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		args := strings.Split(string(data), "\x00")
		if filepath.Base(args[0]) != program || !strings.Contains(string(data), stateDir+"/conf/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	return 0
}
