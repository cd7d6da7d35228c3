package preflight

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"hcp.internal/platform/internal/local/cgroup"
	"hcp.internal/platform/internal/local/network"
	"hcp.internal/platform/internal/local/packages"
)

// Input says what to look at.
type Input struct {
	StateDir      string
	LongestSocket string
	Ports         []string // "address:port"
	Ours          bool     // an instance with this state folder was started and not taken down
	OtherInstance string
	Foreign       []string // files in the state folder that are not of local mode
}

// Observe looks at the machine. It changes nothing but a temporary folder beside the state folder, which it removes.
func Observe(ctx context.Context, in Input) Facts {
	f := Facts{
		OS: runtime.GOOS, UID: os.Geteuid(), StateDir: in.StateDir, OtherState: in.OtherInstance, Foreign: in.Foreign,
		SocketPath: len(in.StateDir) + len(in.LongestSocket), Missing: packages.Missing(),
	}
	base := existing(in.StateDir)
	f.CgroupErr = text(tryCgroups())
	if f.UID == 0 {
		f.OverlayErr = text(tryOverlay(base))
		f.NamespaceErr = text(tryNamespace())
		f.NetfilterErr = text(tryBridgeFilter(ctx))
		f.FirewallErr = text(network.TryFirewall(ctx))
	}
	// After a crash of the supervisor, pods of ours go on and hold ports, so the control group tells whose they are.
	running := in.Ours && inUse()
	if !running {
		f.BusyPorts = busy(in.Ports)
		f.Routes = overlapping()
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(base, &fs); err == nil {
		f.DiskFree = fs.Bavail * uint64(fs.Bsize)
	}
	f.MemAvailable = memAvailable()
	_, err := exec.LookPath("go")
	f.GoMissing = err != nil
	_, err = exec.LookPath("apt-get")
	f.AptMissing = err != nil && len(f.Missing) > 0
	if running {
		// What a running cluster uses is not available any more, and need not be.
		f.MemAvailable, f.DiskFree = max(f.MemAvailable, minMemory), max(f.DiskFree, minDisk)
	}
	return f
}

// inUse tells whether processes of local mode run.
func inUse() bool {
	list, err := cgroup.Mounted()
	if err != nil {
		return false
	}
	pids, err := cgroup.Processes(list, network.Group)
	return err == nil && len(pids) > 0
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// existing is the nearest folder that is there.
func existing(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return dir
		}
		dir = parent
	}
}

// inThread runs f on a thread of its own, which is thrown away, so that f may change the thread's namespaces.
func inThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- f()
	}()
	return <-done
}

// Scratch begins the names of folders that are there while the machine is looked at, or longer where that was killed.
const Scratch = ".hypershift-preflight-"

func tryOverlay(base string) (err error) {
	dir, err := os.MkdirTemp(base, Scratch)
	if err != nil {
		return fmt.Errorf("making a folder in %s: %w", base, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, d := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	return inThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("making a mount namespace: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("making mounts private: %w", err)
		}
		join := func(d string) string { return filepath.Join(dir, d) }
		options := "lowerdir=" + join("lower") + ",upperdir=" + join("upper") + ",workdir=" + join("work")
		if err := unix.Mount("overlay", join("merged"), "overlay", 0, options); err != nil {
			return fmt.Errorf("mounting one in %s: %w", base, err)
		}
		// In this namespace only; without it the folder could not be removed before the thread ends.
		return unix.Unmount(join("merged"), unix.MNT_DETACH)
	})
}

func tryNamespace() error {
	return inThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("making a network namespace: %w", err)
		}
		return nil
	})
}

// tryBridgeFilter loads br_netfilter where it is a module that can be loaded on demand.
func tryBridgeFilter(ctx context.Context) error {
	const path = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	_ = exec.CommandContext(ctx, "modprobe", "br_netfilter").Run() // the next look tells
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("the kernel has no br_netfilter")
	}
	return nil
}

// busy lists the addresses that something listens on. An address that the machine does not have yet is tried on all
// addresses, where a listener on the same port would be in the way too.
func busy(addresses []string) []string {
	var out []string
	for _, a := range addresses {
		err := listen(a)
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			_, port, _ := net.SplitHostPort(a)
			err = wildcardBusy(port)
		}
		if err != nil {
			out = append(out, a)
		}
	}
	return out
}

func listen(address string) error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", address) // returns at once
	if err != nil {
		return err
	}
	return l.Close()
}

// wildcardBusy looks for a listener on 0.0.0.0 or ::; one on another single address is not in the way.
func wildcardBusy(port string) error {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return err
	}
	want := fmt.Sprintf(":%04X", n)
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(data), "\n") {
			fields := strings.Fields(line)
			const listening = "0A"
			if len(fields) > 3 && fields[3] == listening && strings.HasSuffix(fields[1], want) && strings.Trim(strings.TrimSuffix(fields[1], want), "0") == "" {
				return syscall.EADDRINUSE
			}
		}
	}
	return nil
}

// overlapping lists routes of other links that overlap with the cluster's ranges. The default route does not count.
func overlapping() []string {
	data, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil
	}
	var ours []netip.Prefix
	for _, r := range []string{network.ClusterCIDR, network.ServiceCIDR, network.LoadBalancerCIDR} {
		ours = append(ours, netip.MustParsePrefix(r))
	}
	var out []string
	for _, r := range parseRoutes(data) {
		if r.dev == network.Bridge || r.dst.Bits() == 0 {
			continue
		}
		if slices.ContainsFunc(ours, r.dst.Overlaps) {
			out = append(out, r.dst.String()+" dev "+r.dev)
		}
	}
	return out
}

type route struct {
	dst netip.Prefix
	dev string
}

// parseRoutes reads /proc/net/route, where addresses are hexadecimal in the machine's byte order (little endian).
func parseRoutes(data []byte) []route {
	var out []route
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 8 {
			continue
		}
		dst, err1 := strconv.ParseUint(f[1], 16, 32)
		mask, err2 := strconv.ParseUint(f[7], 16, 32)
		if err1 != nil || err2 != nil {
			continue // the heading
		}
		addr := netip.AddrFrom4([4]byte{byte(dst), byte(dst >> 8), byte(dst >> 16), byte(dst >> 24)})
		ones := 0
		for m := mask; m != 0; m &= m - 1 {
			ones++
		}
		out = append(out, route{netip.PrefixFrom(addr, ones), f[0]})
	}
	return out
}

func memAvailable() uint64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, _ := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}
