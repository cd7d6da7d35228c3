// Package packages installs the Debian packages that local mode runs programs of.
package packages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Needed maps a program to the package that has it.
var Needed = []struct{ Program, Package string }{
	{"/usr/bin/containerd", "containerd"},
	{"/usr/sbin/runc", "runc"},
	{"/usr/lib/cni/bridge", "containernetworking-plugins"},
	{"/usr/sbin/iptables", "iptables"},
	{"/usr/sbin/nft", "nftables"},
	{"/usr/sbin/conntrack", "conntrack"},
	{"/usr/sbin/ip", "iproute2"},
	{"/usr/bin/mount", "mount"},
	{"/usr/sbin/modprobe", "kmod"},
}

// Missing names the packages whose program is not there, by looking alone.
func Missing() []string {
	var out []string
	for _, n := range Needed {
		if !present(n.Program) {
			out = append(out, n.Package)
		}
	}
	return out
}

// present looks in both places where Debian has put system programs.
func present(program string) bool {
	candidates := []string{program, strings.TrimPrefix(program, "/usr")}
	for _, c := range candidates {
		if _, err := os.Stat(c); err == nil {
			return true
		}
	}
	return false
}

// Install installs what is missing.
//
// Debian's containerd package starts a service where systemd runs. Local mode runs its own containerd from its own
// folder, so a service that this installation brought is switched off again; one that was there before is left alone.
func Install(ctx context.Context, logDir string, say func(format string, args ...any)) error {
	missing := Missing()
	if len(missing) == 0 {
		return nil
	}
	brought := !present("/usr/bin/containerd")
	say("%s", strings.Join(missing, " "))
	if err := apt(ctx, logDir, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)); err != nil {
		// The index may be missing or old; with a new one it is tried once more.
		say("updating the package index")
		if uerr := apt(ctx, logDir, []string{"update"}); uerr != nil {
			return errors.Join(err, uerr)
		}
		say("%s", strings.Join(missing, " "))
		if err := apt(ctx, logDir, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)); err != nil {
			return err
		}
	}
	if left := Missing(); len(left) > 0 {
		return fmt.Errorf("apt-get installed the packages but their programs are not where Debian has them: %s", strings.Join(left, ", "))
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil && brought {
		if out, err := exec.CommandContext(ctx, "systemctl", "disable", "--now", "containerd.service").CombinedOutput(); err != nil {
			return fmt.Errorf("switching off the containerd service that the package brought: %w: %s", err, out)
		}
	}
	return nil
}

func apt(ctx context.Context, logDir string, args []string) error {
	path, err := exec.LookPath("apt-get")
	if err != nil {
		return fmt.Errorf("installing %s: there is no apt-get on this machine; install these packages by other means", strings.Join(args, " "))
	}
	if err := os.MkdirAll(logDir, 0o700); err != nil {
		return fmt.Errorf("creating the folder of logs: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(logDir, "packages.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of packages: %w", err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, path, append([]string{"-o", "DPkg::Lock::Timeout=120"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running apt-get %s: %w; its output is in %s", strings.Join(args, " "), err, log.Name())
	}
	return nil
}
