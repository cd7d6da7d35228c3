package fault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// table is the name of ours in the network namespaces of pods. Rules of others are never touched.
const table = "adversary"

// all drops everything but a pod's own loopback; noRegistry only what goes to the registry's port.
const (
	all = `
table inet adversary {
  chain in  { type filter hook input priority -300; policy drop; iif lo accept; }
  chain out { type filter hook output priority -300; policy drop; oif lo accept; }
}
`
	noRegistry = `
table inet adversary {
  chain out { type filter hook output priority -300; policy accept; tcp dport 5000 drop; }
}
`
)

// cut adds rules to the network namespace of a process, which must not be the machine's own.
func (f *Faults) cut(pid int, rules string) (undo func() error, err error) {
	number, err := networkOf(pid)
	if err != nil {
		return nil, err
	}
	if own, err := networkOf(os.Getpid()); err != nil || own == number {
		return nil, errors.Join(fmt.Errorf("process %d has the machine's own network", pid), err)
	}
	undo, err = f.Journal.Do(Harm{Network: number})
	if err != nil {
		return nil, err
	}
	if err := nft(pid, rules, "-f", "-"); err != nil {
		return undo, errors.Join(err, undo())
	}
	return undo, nil
}

// reconnect takes our table out of a network namespace. One that nobody lives in any more is gone, and its rules with it.
func reconnect(number uint64) error {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range processes {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if n, err := networkOf(pid); err != nil || n != number {
			continue
		}
		// "add" before "delete": a table that was never made is deleted without an error.
		err = nft(pid, "add table inet "+table+"\ndelete table inet "+table+"\n", "-f", "-")
		if err == nil {
			return nil
		}
		if now, gone := networkOf(pid); gone == nil && now == number {
			return err
		} // it has ended meanwhile: another one may live there
	}
	return nil
}

func nft(pid int, rules string, args ...string) error {
	cmd := exec.Command("nsenter", append([]string{"--net=/proc/" + strconv.Itoa(pid) + "/ns/net", "nft"}, args...)...) //nolint:gosec,noctx // short, and must be done in the end
	cmd.Stdin = strings.NewReader(rules)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("nft in the network namespace of process %d: %w: %s", pid, err, out.String())
	}
	return nil
}

// networkOf is the number of a process's network namespace.
func networkOf(pid int) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(pid)+"/ns/net", &st); err != nil {
		return 0, err
	}
	return st.Ino, nil
}
