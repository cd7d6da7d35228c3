package child

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// one is a process as the kernel tells of it.
type one struct {
	pid, parent, session int
	resident             int64
	zombie               bool
}

// processes are all that this process may see.
func processes() []one {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []one
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // it has just ended
		}
		// Behind the name, which may hold anything: state, parent, group, session, …, and resident pages as the 22nd.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 22 {
			continue
		}
		number := func(i int) int {
			n, _ := strconv.Atoi(string(fields[i]))
			return n
		}
		all = append(all, one{pid: pid, parent: number(1), session: number(3), zombie: string(fields[0]) == "Z", resident: int64(number(21)) * int64(os.Getpagesize())})
	}
	return all
}

// family are the program and what it started: by parent, by session, and with orphans what was handed to this process.
func family(all []one, leader int, orphans bool) []one {
	in := map[int]bool{leader: true}
	for grew := true; grew; {
		grew = false
		for _, o := range all {
			if !in[o.pid] && (in[o.parent] || o.session == leader || orphans && o.parent == os.Getpid() && o.pid != leader) {
				in[o.pid], grew = true, true
			}
		}
	}
	var found []one
	for _, o := range all {
		if in[o.pid] {
			found = append(found, o)
		}
	}
	return found
}

// measure says which bound is broken; nil: none.
func (p *Process) measure() error {
	var memory int64
	count := 0
	for _, o := range family(processes(), p.cmd.Process.Pid, p.orphans) {
		memory += o.resident
		if !o.zombie {
			count++
		}
	}
	disk, err := usage(p.command.Dir)
	switch {
	case memory > p.limits.Memory:
		return fmt.Errorf("took more than %d MiB of memory", p.limits.Memory>>20)
	case count > p.limits.Processes:
		return fmt.Errorf("started more than %d processes", p.limits.Processes)
	case err == nil && disk-p.base > p.limits.Disk:
		return fmt.Errorf("wrote more than %d MiB", p.limits.Disk>>20)
	}
	return nil
}

// usage is how many bytes a folder takes on disk.
func usage(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // because programs remove files while this looks
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // because programs remove files while this looks
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += stat.Blocks * 512
		}
		return nil
	})
	return sum, err
}

// maxSweeps bounds how often is looked again for processes that start others while they are ended.
const maxSweeps = 20

// sweep ends what the program has started and has not ended itself. The program's own end is waited for elsewhere.
func (p *Process) sweep() {
	leader := p.cmd.Process.Pid
	for range maxSweeps {
		alive := 0
		for _, o := range family(processes(), leader, p.orphans) {
			switch {
			case o.zombie && o.pid != leader && o.parent == os.Getpid():
				_, _ = syscall.Wait4(o.pid, nil, syscall.WNOHANG, nil) // handed to us; it was none of Go's
			case !o.zombie:
				if o.pid != leader {
					alive++
				}
				_ = syscall.Kill(o.pid, syscall.SIGKILL)
			}
		}
		if alive == 0 {
			return
		}
	}
}
