package teardown

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"hcp.internal/platform/internal/local/cgroup"
)

// observe looks at the machine. group is the name of the control group, network the name of the CNI network.
func observe(ctx context.Context, stateDir, group, network string) (Observed, []cgroup.Hierarchy, error) {
	o := Observed{StateDir: stateDir}
	groups, err := cgroup.Mounted()
	if err != nil {
		return o, nil, err
	}
	pids, err := cgroup.Processes(groups, group)
	if err != nil {
		return o, nil, err
	}
	for _, pid := range pids {
		o.Processes = append(o.Processes, Process{PID: pid, Name: processName(pid)})
	}
	for _, h := range groups {
		if _, err := os.Stat(filepath.Join(h.Path, group)); err == nil {
			o.Groups++
		}
	}
	if o.Mounts, err = mounts(); err != nil {
		return o, nil, err
	}
	if o.Links, err = links(ctx); err != nil {
		return o, nil, err
	}
	if o.Tables, err = tables(ctx); err != nil {
		return o, nil, err
	}
	o.Files = outside(stateDir, network)
	if _, err := os.Lstat(stateDir); err == nil {
		o.StateDirs = []string{stateDir}
	}
	return o, groups, nil
}

func processName(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(data) == 0 {
		return "process"
	}
	first, _, _ := bytes.Cut(data, []byte{0})
	return filepath.Base(string(first))
}

func mounts() ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading mounts: %w", err)
	}
	var out []string
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 4 {
			out = append(out, unescape(f[4]))
		}
	}
	return out, nil
}

// unescape undoes the octal escapes of blanks in mountinfo.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func links(ctx context.Context) ([]Link, error) {
	out, err := exec.CommandContext(ctx, "ip", "-json", "link", "show").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil // without iproute2 nothing was made
	}
	if err != nil {
		return nil, fmt.Errorf("listing links: %w", err)
	}
	var list []struct {
		Name   string `json:"ifname"`
		Master string `json:"master"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("decoding the list of links: %w", err)
	}
	links := make([]Link, 0, len(list))
	for _, l := range list {
		links = append(links, Link{l.Name, l.Master})
	}
	return links, nil
}

func tables(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "nft", "list", "tables").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil // without nft nothing was made
	}
	if err != nil {
		return nil, fmt.Errorf("listing packet filter tables: %w", err)
	}
	var tables []string
	for _, line := range strings.Split(string(out), "\n") {
		if rest, ok := strings.CutPrefix(line, "table "); ok {
			tables = append(tables, strings.TrimSpace(rest))
		}
	}
	return tables, nil
}

// outside finds what programs put into fixed places: links to container logs, results of CNI calls, sockets of shims.
func outside(stateDir, network string) []string {
	var out []string
	prefix := strings.TrimSuffix(stateDir, "/") + "/"
	logs, _ := filepath.Glob("/var/log/containers/*")
	for _, l := range logs {
		if target, err := os.Readlink(l); err == nil && strings.HasPrefix(target, prefix) {
			out = append(out, l)
		}
	}
	results, _ := filepath.Glob("/var/lib/cni/results/" + network + "-*")
	cached, _ := filepath.Glob("/var/lib/cni/cache/results/" + network + "-*")
	out = append(out, append(results, cached...)...)
	_ = filepath.WalkDir(filepath.Join(stateDir, "containerd", "state", "io.containerd.runtime.v2.task"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read has no address to tell
		}
		if d.Name() == "rootfs" && d.IsDir() {
			return fs.SkipDir
		}
		if d.Name() == "address" {
			if data, err := os.ReadFile(path); err == nil {
				if s := strings.TrimPrefix(strings.TrimSpace(string(data)), "unix://"); strings.HasPrefix(s, "/run/containerd/s/") {
					if _, err := os.Lstat(s); err == nil {
						out = append(out, s)
					}
				}
			}
		}
		return nil
	})
	return out
}
