//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hcp.internal/platform/internal/local/cgroup"
	"hcp.internal/platform/internal/local/components"
)

// ticks per second of the times in /proc/*/stat, the same on all architectures that Go runs on.
const ticks = 100

// memory in bytes. rss counts a page in every process that has it, pss splits it among them.
type memory struct{ rss, pss float64 }

func (m memory) plus(o memory) memory { return memory{m.rss + o.rss, m.pss + o.pss} }

func memoryOf(pid int) (memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return memory{}, err
	}
	found := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kb, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return memory{}, fmt.Errorf("/proc/%d/smaps_rollup: %q: %w", pid, lines.Text(), err)
		}
		found[fields[0]] = kb * 1024
	}
	return memory{rss: found["Rss:"], pss: found["Pss:"]}, lines.Err()
}

// cpuOf is how many CPU seconds a process has used so far.
func cpuOf(pid int) (float64, error) { return cpuTimes(pid, 2) }

// cpuWithChildren adds children that have ended and were waited for.
func cpuWithChildren(pid int) (float64, error) { return cpuTimes(pid, 4) }

// cpuTimes adds up the first of utime, stime, cutime and cstime.
func cpuTimes(pid, first int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may have spaces; after it come state (field 3) and so on, the times are fields 14 to 17.
	_, rest, ok := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 11+first {
		return 0, fmt.Errorf("/proc/%d/stat: cannot read %q", pid, data)
	}
	total := 0.0
	for _, f := range fields[11 : 11+first] {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		total += n / ticks
	}
	return total, nil
}

// process is one that runs in a pod.
type process struct {
	pid     int
	program string
}

// processesOf finds the processes of pods by their UIDs, which are part of the names of their control groups.
func processesOf(uids []string) (map[string][]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	found := map[string][]process{}
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		for _, uid := range uids {
			if !bytes.Contains(groups, []byte("/pod"+uid+"/")) {
				continue
			}
			dir := filepath.Dir(file)
			pid, err := strconv.Atoi(filepath.Base(dir))
			if err != nil {
				return nil, err
			}
			if name := program(dir); name != "" {
				found[uid] = append(found[uid], process{pid: pid, program: name})
			}
		}
	}
	return found, nil
}

// program is what a process calls itself, with the role of a program that has several. Empty for one that has ended.
func program(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil || len(data) == 0 {
		return ""
	}
	args := strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
	name := filepath.Base(args[0])
	if name == "hcp-sidecar" && len(args) > 1 {
		name += " " + args[1]
	}
	return name
}

// cpuOfNode is how many CPU seconds everything of the local cluster has used so far: the node, the management cluster and all pods, also
// those that are gone. Unlike wall time it says the same on a machine that others use, too.
func cpuOfNode() (float64, error) {
	groups, err := cgroup.Mounted()
	if err != nil {
		return 0, err
	}
	used, err := cgroup.Used(groups, components.CgroupRoot)
	return used.Seconds(), err
}
