package boot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	memoryInfo = "/proc/meminfo"
	cpuFolder  = "/sys/devices/system/cpu"
	nodeFolder = "/sys/devices/system/node"
	// boundsDir holds what is laid over them.
	boundsDir = "/run/machine/bounds"

	maxCPUs   = 4096
	minMemory = 64 << 20
	kib       = 1 << 10
)

// Bounds are how much of its host a machine may use. 0 is no bound.
//
// The control group of the machine enforces them, but a kubelet reports what the kernel says the computer has, and would take pods
// for all of that. So the machine's own view of its processors and memory is made to fit; its pods have views of their own.
type Bounds struct {
	CPUs   int   // MACHINE_CPUS
	Memory int64 // MACHINE_MEMORY, in bytes
}

func readBounds(getenv func(string) string) (b Bounds, err error) {
	var problems []error
	if text := getenv("MACHINE_CPUS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxCPUs {
			problems = append(problems, fmt.Errorf("MACHINE_CPUS %q is no number from 1 to %d", text, maxCPUs))
		}
		b.CPUs = n
	}
	if text := getenv("MACHINE_MEMORY"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < minMemory {
			problems = append(problems, fmt.Errorf("MACHINE_MEMORY %q is no number of bytes from %d", text, minMemory))
		}
		b.Memory = n
	}
	return b, errors.Join(problems...)
}

// show lays files over those from which processors and memory are read.
func (b Bounds) show() error {
	if b.Memory > 0 {
		data, err := os.ReadFile(memoryInfo)
		if err != nil {
			return fmt.Errorf("reading how much memory there is: %w", err)
		}
		bounded := boundMemory(data, b.Memory)
		if !bytes.Equal(bounded, data) {
			if err := os.MkdirAll(boundsDir, 0o755); err != nil {
				return fmt.Errorf("making a folder for the bounds: %w", err)
			}
			path := filepath.Join(boundsDir, "meminfo")
			if err := os.WriteFile(path, bounded, 0o444); err != nil {
				return fmt.Errorf("writing how much memory there is: %w", err)
			}
			if err := bind(path, memoryInfo); err != nil {
				return err
			}
		}
	}
	if b.CPUs > 0 {
		fewer, err := boundCPUs(cpuFolder, filepath.Join(boundsDir, "cpu"), b.CPUs)
		if err != nil || !fewer {
			return err
		}
		if err := bind(filepath.Join(boundsDir, "cpu"), cpuFolder); err != nil {
			return err
		}
		// Without memory nodes, which list processors too, those of the folder count.
		if err := unix.Mount("tmpfs", nodeFolder, "tmpfs", unix.MS_RDONLY, "mode=0555,size=4k"); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("hiding memory nodes: %w", err)
		}
	}
	return nil
}

// memoryLine is a line of /proc/meminfo that must not exceed the total.
var memoryLine = regexp.MustCompile(`(?m)^(MemTotal|MemFree|MemAvailable|Cached|Active|Inactive|Active\(file\)|Inactive\(file\)|Active\(anon\)|Inactive\(anon\)|AnonPages|Mapped):( +)([0-9]+) kB$`)

// boundMemory gives /proc/meminfo as it is for a computer with no more than limit bytes.
func boundMemory(info []byte, limit int64) []byte {
	return memoryLine.ReplaceAllFunc(info, func(line []byte) []byte {
		m := memoryLine.FindSubmatch(line)
		value, err := strconv.ParseInt(string(m[3]), 10, 64)
		if err != nil || value <= limit/kib {
			return line
		}
		return fmt.Appendf(nil, "%s:%s%d kB", m[1], m[2], limit/kib)
	})
}

// topology are the files of a processor from which cores and sockets are told.
var topology = []string{"core_id", "physical_package_id"}

// boundCPUs makes a folder like from, of which only the first n processors are there. fewer is false when there are no more anyhow.
func boundCPUs(from, to string, n int) (fewer bool, err error) {
	if _, err := os.Stat(filepath.Join(from, fmt.Sprint("cpu", n))); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for i := range n {
		name := fmt.Sprint("cpu", i, "/topology")
		if err := os.MkdirAll(filepath.Join(to, name), 0o755); err != nil {
			return false, fmt.Errorf("making processors: %w", err)
		}
		for _, file := range topology {
			data, err := os.ReadFile(filepath.Join(from, name, file))
			if errors.Is(err, fs.ErrNotExist) {
				data = fmt.Appendln(nil, map[string]int{"core_id": i}[file])
			} else if err != nil {
				return false, fmt.Errorf("reading the topology of processors: %w", err)
			}
			if err := os.WriteFile(filepath.Join(to, name, file), data, 0o444); err != nil {
				return false, fmt.Errorf("making processors: %w", err)
			}
		}
	}
	all := "0\n"
	if n > 1 {
		all = fmt.Sprintf("0-%d\n", n-1)
	}
	for _, file := range []string{"online", "possible", "present"} {
		if err := os.WriteFile(filepath.Join(to, file), []byte(all), 0o444); err != nil {
			return false, fmt.Errorf("making processors: %w", err)
		}
	}
	return true, nil
}
