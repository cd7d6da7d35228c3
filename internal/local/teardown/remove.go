package teardown

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/local/cgroup"
)

const (
	// killLimit is how long killed processes may take to be gone; one in an uninterruptible wait takes longest.
	killLimit = 20 * time.Second
	killPoll  = 50 * time.Millisecond
	// passes is how often the machine is looked at: what ran while it was looked at may have made something new.
	passes = 5
)

// Input says what to take down.
type Input struct {
	StateDir string
	Last     string // the file of the state folder that goes last, by which the folder is known
	Group    string // control group
	Network  string // CNI network
	Names    Names
	// Ours: the caller knows that local mode was here, by the state folder for example.
	Ours  bool
	Clock clock.WithTicker
	// BeforeState runs when nothing is left but the state folder, which it may read.
	BeforeState func() error
	Report      func(line string)
}

// emptyDirs are folders that programs of ours make; they are removed when they are empty.
var emptyDirs = []string{
	"/var/log/containers", "/var/lib/cni/results", "/var/lib/cni/cache/results", "/var/lib/cni/cache", "/var/lib/cni", "/run/containerd/s", "/run/containerd/runc", "/run/containerd",
}

// Run removes everything and reports it. It goes on after a failure and returns all failures.
func Run(ctx context.Context, in Input) error {
	var errs []error
	for range passes {
		o, groups, err := observe(ctx, in.StateDir, in.Group, in.Network)
		if err != nil {
			return err
		}
		in.Ours = in.Ours || o.ours(in.Names) // also when the next look finds only what a killed process made in its last moment
		o.Ours = in.Ours
		plan := planFor(o, in.Names)
		state := plan.State
		plan.State = "" // last of all
		if plan.Empty() {
			return in.finish(state)
		}
		for _, line := range plan.Summary() {
			in.Report("removing " + line)
		}
		errs = carryOut(ctx, in, plan, groups)
	}
	return fmt.Errorf("something is left after %d attempts: %w", passes, errors.Join(errs...))
}

func (in Input) finish(state string) error {
	if in.BeforeState != nil {
		if err := in.BeforeState(); err != nil {
			return err
		}
	}
	for _, d := range emptyDirs {
		_ = os.Remove(d) // fails when something is in it, and then it stays
	}
	if state == "" {
		return nil
	}
	in.Report("removing the state folder " + state)
	return in.removeState(state, os.RemoveAll)
}

// removeState removes the state folder. One that is a mount point can't go: it stays, empty, as it was before "up".
func (in Input) removeState(state string, remove func(string) error) error {
	err := removeFolder(state, in.Last, remove)
	if errors.Is(err, unix.EBUSY) {
		if left, rerr := os.ReadDir(state); rerr == nil && len(left) == 0 {
			in.Report("the state folder " + state + " is a mount point, so it stays, empty")
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("removing the state folder: %w", err)
	}
	return nil
}

// removeFolder removes a folder, and the file last in it only after everything else: whoever is interrupted finds the folder by it again.
func removeFolder(dir, last string, remove func(string) error) error {
	if _, err := os.Readlink(dir); err == nil {
		return remove(dir) // what a link leads to stays: mounts in it have not been found by its name
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); path != last {
			if err := remove(path); err != nil {
				return err
			}
		}
	}
	return remove(dir)
}

func carryOut(ctx context.Context, in Input, p Plan, groups []cgroup.Hierarchy) []error {
	var errs []error
	if len(p.Kill) > 0 {
		errs = append(errs, kill(ctx, in, groups))
	}
	for _, m := range p.Unmount {
		if err := unix.Unmount(m, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("unmounting %s: %w", m, err))
		}
	}
	for _, l := range p.Links {
		errs = append(errs, command(ctx, "Cannot find device", "ip", "link", "delete", l))
	}
	for _, t := range p.Tables {
		family, name, _ := strings.Cut(t, " ")
		errs = append(errs, command(ctx, "No such file or directory", "nft", "delete", "table", family, name))
	}
	for _, f := range p.Files {
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("removing %s: %w", f, err))
		}
	}
	if p.Groups {
		_, err := cgroup.Remove(groups, in.Group)
		errs = append(errs, err)
	}
	return errs
}

// kill kills everything in the control group until it is empty. Processes are looked up anew each time, so a PID that has
// been given to another process meanwhile is not in the list.
func kill(ctx context.Context, in Input, groups []cgroup.Hierarchy) error {
	deadline := in.Clock.Now().Add(killLimit)
	for {
		pids, err := cgroup.Processes(groups, in.Group)
		if err != nil {
			return err
		}
		left := 0
		for _, pid := range pids {
			if pid == in.Names.Self || pid <= 1 {
				continue
			}
			left++
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("killing process %d (%s): %w", pid, processName(pid), err)
			}
		}
		if left == 0 {
			return nil
		}
		if in.Clock.Now().After(deadline) {
			return fmt.Errorf("%d killed processes have not ended after %s; a hanging disk or network file system may hold them", left, killLimit)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-in.Clock.After(killPoll):
		}
	}
}

// command runs a command whose failure is fine when its output says that the thing is gone.
func command(ctx context.Context, gone, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil && !strings.Contains(string(out), gone) {
		return fmt.Errorf("running %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
