// Package packages installs the Debian packages that local mode runs programs of.
package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"hcp.internal/platform/internal/atomicfile"
)

const (
	containerd = "/usr/bin/containerd"
	// limit is how long packages may take to be unpacked and configured, which takes seconds: a machine on which it ends is stuck.
	limit = 30 * time.Minute
)

// Needed maps a program to the package that has it.
var Needed = []struct{ Program, Package string }{
	{containerd, "containerd"},
	{"/usr/sbin/runc", "runc"},
	{"/usr/lib/cni/bridge", "containernetworking-plugins"},
	{"/usr/sbin/iptables", "iptables"},
	{"/usr/sbin/nft", "nftables"},
	{"/usr/sbin/conntrack", "conntrack"},
	{"/usr/sbin/ip", "iproute2"},
	{"/usr/bin/mount", "mount"},
	{"/usr/sbin/modprobe", "kmod"},
}

// machine is what packages are installed on: its files are below root.
type machine struct{ root string }

var thisMachine = machine{root: "/"}

// Missing names the packages whose program is not there, by looking alone.
func Missing() []string { return thisMachine.missing() }

func (m machine) missing() []string {
	var out []string
	for _, n := range Needed {
		if !m.present(n.Program) {
			out = append(out, n.Package)
		}
	}
	return out
}

// present looks in both places where Debian has put system programs.
func (m machine) present(program string) bool {
	return m.has(program) || m.has(strings.TrimPrefix(program, "/usr"))
}

func (m machine) has(path string) bool {
	_, err := os.Stat(filepath.Join(m.root, path))
	return err == nil
}

// interrupted tells whether dpkg was cut short, as apt-get sees it, which then refuses to work.
func (m machine) interrupted() bool {
	updates, _ := os.ReadDir(filepath.Join(m.root, "/var/lib/dpkg/updates"))
	return slices.ContainsFunc(updates, func(e fs.DirEntry) bool { return strings.Trim(e.Name(), "0123456789") == "" })
}

// Installer installs what is missing.
type Installer struct {
	LogDir string
	// Note is a file that is there from before containerd is installed until its service is off.
	Note string
	// Say tells what it is at. It may be called from any goroutine.
	Say func(format string, args ...any)
}

// Run installs what is missing. When ctx ends it ends too, but never in the middle of what would leave a package half installed.
//
// Debian's containerd package starts a service where systemd runs. Local mode runs its own containerd from its own
// folder, so a service that an installation of ours brought is switched off again, also by a later run than that which
// was killed after it; one that was there before is left alone.
func (i Installer) Run(ctx context.Context) error { return i.run(ctx, thisMachine) }

func (i Installer) run(ctx context.Context, m machine) error {
	var err error
	if missing := m.missing(); len(missing) > 0 {
		if !m.present(containerd) {
			if err := i.note(); err != nil {
				return err
			}
		}
		err = i.install(ctx, m, missing)
	}
	// Also after a failure: some packages may be there.
	if err = errors.Join(err, i.switchOff(ctx, m)); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if left := m.missing(); len(left) > 0 {
		return fmt.Errorf("apt-get installed the packages but their programs are not where Debian has them: %s", strings.Join(left, ", "))
	}
	return nil
}

func (i Installer) note() error {
	if err := os.MkdirAll(filepath.Dir(i.Note), 0o700); err != nil {
		return fmt.Errorf("creating the state folder: %w", err)
	}
	return atomicfile.Write(i.Note, nil, 0o600)
}

// SwitchOff stops and disables the service of a containerd that an installation of ours brought, if that has not been done.
func (i Installer) SwitchOff(ctx context.Context) error { return i.switchOff(ctx, thisMachine) }

func (i Installer) switchOff(ctx context.Context, m machine) error {
	if _, err := os.Stat(i.Note); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if m.present(containerd) && m.has("/run/systemd/system") {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		if out, err := exec.CommandContext(ctx, "systemctl", "disable", "--now", "containerd.service").CombinedOutput(); err != nil {
			return fmt.Errorf("switching off the containerd service that the package brought: %w: %s", err, out)
		}
	}
	if err := os.Remove(i.Note); err != nil {
		return fmt.Errorf("removing the note that containerd was brought: %w", err)
	}
	return nil
}

// install installs packages with apt-get.
func (i Installer) install(ctx context.Context, m machine, packages []string) error {
	var repaired error
	if m.interrupted() {
		i.Say("completing an installation that was cut short")
		// It fails where another program installs something just now. apt-get waits for that one.
		repaired = i.whole(ctx, "dpkg", "--configure", "-a")
	}
	i.Say("%s", strings.Join(packages, " "))
	err := i.fetchAndInstall(ctx, packages)
	if err != nil && ctx.Err() == nil {
		// The index may be missing or old; with a new one it is tried once more.
		i.Say("updating the package index")
		if uerr := i.execute(ctx, "apt-get", patient("update")...); uerr != nil {
			return errors.Join(repaired, err, uerr)
		}
		i.Say("%s", strings.Join(packages, " "))
		err = i.fetchAndInstall(ctx, packages)
	}
	if err != nil {
		return errors.Join(repaired, err)
	}
	return nil
}

// fetchAndInstall can be ended at any time while packages are fetched, which may take long, and not any more when they are installed.
func (i Installer) fetchAndInstall(ctx context.Context, packages []string) error {
	args := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	if err := i.execute(ctx, "apt-get", patient(append(args, "--download-only")...)...); err != nil {
		return err
	}
	return i.whole(ctx, "apt-get", patient(args...)...)
}

// patient has apt-get wait for another one.
func patient(args ...string) []string {
	return append([]string{"-o", "DPkg::Lock::Timeout=120"}, args...)
}

// whole runs a program that isn't ended when ctx ends.
func (i Installer) whole(ctx context.Context, name string, args ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { i.Say("stopping once %s is through, so that no package stays half installed", name) })()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return i.execute(within, name, args...)
}

// execute runs a program, which writes to the log of packages.
func (i Installer) execute(ctx context.Context, name string, args ...string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("running %s %s: there is no %[1]s on this machine; install these packages by other means", name, strings.Join(args, " "))
	}
	if err := os.MkdirAll(i.LogDir, 0o700); err != nil {
		return fmt.Errorf("creating the folder of logs: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(i.LogDir, "packages.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of packages: %w", err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // or the terminal's Ctrl-C would reach it directly
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("running %s: %w", name, ctx.Err())
		}
		return fmt.Errorf("running %s %s: %w; its output is in %s", name, strings.Join(args, " "), err, log.Name())
	}
	return nil
}
