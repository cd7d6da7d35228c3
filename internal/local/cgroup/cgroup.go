// Package cgroup makes, joins and empties the control group that every process of local mode is in.
//
// On a machine with version 1 the group exists once per hierarchy, on one with version 2 once. Both are found by looking
// at what is mounted.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Hierarchy is a mounted control group file system.
type Hierarchy struct {
	Path        string
	Version     int
	Controllers []string // of version 1: from the mount options; of version 2: from cgroup.controllers
}

// knownControllers are the options of a version 1 mount that name a controller.
var knownControllers = []string{
	"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "net_cls", "net_prio", "perf_event", "hugetlb", "rdma", "misc", "name=systemd",
}

// Mounted lists the hierarchies in /proc/self/mountinfo.
func Mounted() ([]Hierarchy, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading mounts: %w", err)
	}
	list := parse(string(data))
	for i, h := range list {
		if h.Version == 2 {
			c, err := os.ReadFile(filepath.Join(h.Path, "cgroup.controllers"))
			if err == nil {
				list[i].Controllers = strings.Fields(string(c))
			}
		}
	}
	return list, nil
}

func parse(mountinfo string) []Hierarchy {
	var out []Hierarchy
	for _, line := range strings.Split(mountinfo, "\n") {
		left, right, ok := strings.Cut(line, " - ")
		a, b := strings.Fields(left), strings.Fields(right)
		if !ok || len(a) < 5 || len(b) < 3 {
			continue
		}
		switch b[0] {
		case "cgroup2":
			out = append(out, Hierarchy{Path: a[4], Version: 2})
		case "cgroup":
			h := Hierarchy{Path: a[4], Version: 1}
			for _, o := range strings.Split(b[2], ",") {
				if slices.Contains(knownControllers, o) {
					h.Controllers = append(h.Controllers, o)
				}
			}
			out = append(out, h)
		}
	}
	return out
}

// Unified tells whether version 2 has the controllers, as on a machine without version 1.
func Unified(list []Hierarchy) bool {
	return !slices.ContainsFunc(list, func(h Hierarchy) bool { return h.Version == 1 })
}

// useful leaves out a version 2 mount beside version 1, which has no controllers.
func useful(list []Hierarchy) []Hierarchy {
	if Unified(list) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(h Hierarchy) bool { return h.Version == 2 })
}

// Create makes the group, with those above it, in every hierarchy, with all processors and memory nodes of the machine.
func Create(list []Hierarchy, name string) error {
	for _, h := range useful(list) {
		parent := h.Path
		for _, level := range strings.Split(name, "/") {
			dir := filepath.Join(parent, level)
			if err := create(h, parent, dir); err != nil {
				return err
			}
			parent = dir
		}
	}
	return nil
}

func create(h Hierarchy, parent, dir string) error {
	if h.Version == 2 {
		enable(parent, h.Controllers)
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating control group %s: %w", dir, err)
	}
	if h.Version == 1 && slices.Contains(h.Controllers, "cpuset") {
		// A new cpuset of version 1 is empty, and an empty one takes no process.
		return inheritCpuset(parent, dir)
	}
	return nil
}

// enable hands controllers down to the groups below; one that cannot be handed down is not there for pods either.
func enable(dir string, controllers []string) {
	for _, c := range controllers {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
	}
}

func inheritCpuset(parent, dir string) error {
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		have, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			return fmt.Errorf("reading %s: %w", f, err)
		}
		if strings.TrimSpace(string(have)) != "" {
			continue
		}
		value, err := os.ReadFile(filepath.Join(parent, f))
		if err != nil {
			return fmt.Errorf("reading %s: %w", f, err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), value, 0o644); err != nil {
			return fmt.Errorf("setting %s of %s: %w", f, dir, err)
		}
	}
	return nil
}

// Join moves the calling process, and with it its future children, into a group.
func Join(list []Hierarchy, name string) error {
	if err := Create(list, name); err != nil {
		return err
	}
	for _, h := range useful(list) {
		if err := os.WriteFile(filepath.Join(h.Path, name, "cgroup.procs"), []byte("0"), 0o644); err != nil {
			return fmt.Errorf("joining control group %s: %w", filepath.Join(h.Path, name), err)
		}
	}
	return nil
}

// Weigh gives a group's processes weight times the processor time that its neighbours of default weight get when all want more than
// there is. weight: 1 to 100. A machine without the controller has nothing to weigh.
func Weigh(list []Hierarchy, name string, weight int) error {
	for _, h := range useful(list) {
		if !slices.Contains(h.Controllers, "cpu") {
			continue
		}
		file, value := "cpu.weight", 100*weight
		if h.Version == 1 {
			file, value = "cpu.shares", 1024*weight
		}
		path := filepath.Join(h.Path, name, file)
		if err := os.WriteFile(path, []byte(strconv.Itoa(value)), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("weighing control group: %w", err)
		}
	}
	return nil
}

// Used is the processor time that a group and all below it have used, also those that are gone. An error says that no hierarchy counts it.
func Used(list []Hierarchy, name string) (time.Duration, error) {
	for _, h := range useful(list) {
		if h.Version == 1 && !slices.Contains(h.Controllers, "cpuacct") {
			continue
		}
		used, err := used(h, name)
		if err != nil {
			return 0, fmt.Errorf("reading the processor time of control group %s: %w", name, err)
		}
		return used, nil
	}
	return 0, errors.New("no control group hierarchy counts processor time")
}

func used(h Hierarchy, name string) (time.Duration, error) {
	if h.Version == 1 {
		data, err := os.ReadFile(filepath.Join(h.Path, name, "cpuacct.usage"))
		if err != nil {
			return 0, err
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		return time.Duration(ns), err
	}
	data, err := os.ReadFile(filepath.Join(h.Path, name, "cpu.stat"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "usage_usec "); ok {
			us, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return time.Duration(us) * time.Microsecond, err
		}
	}
	return 0, errors.New("cpu.stat has no usage_usec")
}

// Processes lists all processes in a group and the groups below it.
func Processes(list []Hierarchy, name string) ([]int, error) {
	var pids []int
	err := walk(list, name, func(dir string) error {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return err
		}
		for _, f := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	slices.Sort(pids)
	return slices.Compact(pids), err
}

// Remove removes the group and all below it, which must hold no process. It returns how many groups there were.
func Remove(list []Hierarchy, name string) (int, error) {
	var dirs []string
	if err := walk(list, name, func(dir string) error { dirs = append(dirs, dir); return nil }); err != nil {
		return 0, err
	}
	slices.Reverse(dirs) // parents were found first
	var errs []error
	for _, d := range dirs {
		if err := os.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("removing control group: %w", err))
		}
	}
	return len(dirs), errors.Join(errs...)
}

func walk(list []Hierarchy, name string, visit func(dir string) error) error {
	for _, h := range list {
		err := filepath.WalkDir(filepath.Join(h.Path, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				return visit(path)
			}
			return nil
		})
		// Groups come and go while they are listed.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("listing control groups: %w", err)
		}
	}
	return nil
}
