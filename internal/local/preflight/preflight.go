// Package preflight looks at a machine and says everything that it lacks for local mode, before anything is changed.
package preflight

import (
	"fmt"
	"strings"
)

// Facts is everything that the checks may look at.
type Facts struct {
	OS           string // runtime.GOOS
	UID          int
	AptMissing   bool   // no apt-get, and packages are missing
	CgroupErr    string // why control groups cannot be used; empty: they can
	OverlayErr   string // why an overlay of the state folder's file system cannot be mounted
	NamespaceErr string // why a network namespace cannot be made
	NetfilterErr string // why bridged packets cannot be filtered
	FirewallErr  string // why the machine's firewall cannot be had to let pods pass
	BusyPorts    []string
	OtherState   string   // state folder of another instance on this machine
	Routes       []string // routes that overlap with the cluster's ranges, as "10.0.0.0/8 dev eth1"
	DiskFree     uint64
	MemAvailable uint64
	StateDir     string
	Foreign      []string // what somebody else has in the state folder
	SocketPath   int      // length of the longest unix socket path
	GoMissing    bool
	Missing      []string // packages that up would install
}

// Needs of an idle management cluster, its images and one hosted cluster, with some room.
const (
	minDisk   = 6 << 30
	minMemory = 3 << 30
	// maxSocketPath is the kernel's limit on the path of a unix socket.
	maxSocketPath = 107
)

// Problem is something that the machine lacks, and what to do.
type Problem struct {
	What   string
	Remedy string
}

// Error lists problems.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "this machine lacks %d thing(s); nothing has been changed:", len(e.Problems))
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  - %s\n    %s", p.What, p.Remedy)
	}
	return b.String()
}

// Check returns an *Error with every problem, or nil.
func Check(f Facts) error {
	var problems []Problem
	for _, check := range checks {
		if what, remedy := check(f); what != "" {
			problems = append(problems, Problem{what, remedy})
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &Error{problems}
}

// A check returns empty strings when all is well.
type check func(f Facts) (what, remedy string)

var checks = []check{
	linux, root, otherInstance, stateFolder, cgroups, overlay, namespaces, netfilter, firewall, ports, routes, disk, memory, pathLength, goCompiler, apt,
}

func linux(f Facts) (string, string) {
	if f.OS == "linux" {
		return "", ""
	}
	return "local mode needs Linux, and this is " + f.OS, "use a virtual machine with Debian 12"
}

func root(f Facts) (string, string) {
	if f.UID == 0 {
		return "", ""
	}
	return "not root", "run the command as root, e.g. with sudo"
}

func otherInstance(f Facts) (string, string) {
	if f.OtherState == "" {
		return "", ""
	}
	return "another instance uses the state folder " + f.OtherState, "take it down with: hypershift local down --state-dir " + f.OtherState
}

func stateFolder(f Facts) (string, string) {
	if len(f.Foreign) == 0 {
		return "", ""
	}
	return "the state folder " + f.StateDir + " holds what local mode did not make, which would be removed with it: " + Few(f.Foreign),
		"choose a new or empty folder with --state-dir, or empty this one"
}

// Few names some of many.
func Few(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

func cgroups(f Facts) (string, string) {
	if f.CgroupErr == "" {
		return "", ""
	}
	return "control groups: " + f.CgroupErr, "mount a control group file system with the controllers cpu, memory and pids at /sys/fs/cgroup, and let this machine's root make groups in it"
}

func overlay(f Facts) (string, string) {
	if f.OverlayErr == "" {
		return "", ""
	}
	return "overlay mounts: " + f.OverlayErr, "load the kernel module overlay, and use a state folder on ext4 or xfs (--state-dir); in a container, run it privileged with a volume for the state folder"
}

func namespaces(f Facts) (string, string) {
	if f.NamespaceErr == "" {
		return "", ""
	}
	return "namespaces: " + f.NamespaceErr, "give this machine's root the capability CAP_SYS_ADMIN (a privileged container or a virtual machine)"
}

func netfilter(f Facts) (string, string) {
	if f.NetfilterErr == "" {
		return "", ""
	}
	return "packet filter: " + f.NetfilterErr, "load the kernel module: modprobe br_netfilter"
}

func firewall(f Facts) (string, string) {
	if f.FirewallErr == "" {
		return "", ""
	}
	return "firewall: " + f.FirewallErr, "start firewalld, which puts pods into its zone trusted when it is asked: systemctl start firewalld; or remove its rules: nft delete table inet firewalld"
}

func ports(f Facts) (string, string) {
	if len(f.BusyPorts) == 0 {
		return "", ""
	}
	return "these addresses are in use: " + strings.Join(f.BusyPorts, ", "), "stop what listens there (see it with: ss -ltnp); leftovers of a killed run go away with: hypershift local down"
}

func routes(f Facts) (string, string) {
	if len(f.Routes) == 0 {
		return "", ""
	}
	return "the ranges of the cluster (10.244.0.0/16, 10.96.0.0/16, 10.97.0.0/24) overlap with routes of this machine: " + strings.Join(f.Routes, "; "),
		"leave that network (a VPN?) or remove these routes while the local cluster runs"
}

func disk(f Facts) (string, string) {
	if f.DiskFree >= minDisk {
		return "", ""
	}
	return fmt.Sprintf("only %s of disk are free for %s, and it takes %s", gib(f.DiskFree), f.StateDir, gib(minDisk)), "free some, or choose another folder with --state-dir"
}

func memory(f Facts) (string, string) {
	if f.MemAvailable >= minMemory {
		return "", ""
	}
	return fmt.Sprintf("only %s of memory are available, and it takes %s", gib(f.MemAvailable), gib(minMemory)), "end programs, or give the machine more memory"
}

func pathLength(f Facts) (string, string) {
	if f.SocketPath <= maxSocketPath {
		return "", ""
	}
	return fmt.Sprintf("the path of the state folder is %d bytes too long for unix sockets: %s", f.SocketPath-maxSocketPath, f.StateDir), "choose a shorter one with --state-dir"
}

func goCompiler(f Facts) (string, string) {
	if !f.GoMissing {
		return "", ""
	}
	return "no Go compiler", "install Go 1.26 or newer from https://go.dev/dl and put it on the PATH (1.21 or newer fetches the right one by itself)"
}

func apt(f Facts) (string, string) {
	if !f.AptMissing {
		return "", ""
	}
	return "programs are missing and there is no apt-get to install them with", "install these packages: " + strings.Join(f.Missing, " ")
}

func gib(n uint64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
