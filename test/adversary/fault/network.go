package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/world"
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
	// slowRegistry lets through what fits into the rate; TCP sends the rest again, and again.
	slowRegistry = `
table inet adversary {
  chain in { type filter hook input priority -300; policy accept; tcp sport 5000 limit rate over 16 kbytes/second drop; }
}
`
	// loss takes the percentage twice, for each direction.
	loss = `
table inet adversary {
  chain in  { type filter hook input priority -300; policy accept; iif lo accept; numgen random mod 100 < %d drop; }
  chain out { type filter hook output priority -300; policy accept; oif lo accept; numgen random mod 100 < %d drop; }
}
`
	// strangers takes the same list of addresses twice.
	strangers = `
table inet adversary {
  chain in  { type filter hook input priority -300; policy accept; ip saddr { %[1]s } drop; }
  chain out { type filter hook output priority -300; policy accept; ip daddr { %[1]s } drop; }
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

// apart cuts all pods of a hosted control plane off from those of an operator's namespace. The rules are on the side of the control plane, where packets
// have the addresses of pods; the operator sends to addresses of Services.
func (f *Faults) apart(ctx context.Context, s plan.Step) (met string, err error) {
	operator, err := f.World.Pod(ctx, plan.Step{Place: plan.Operators, Program: s.Program})
	if err != nil {
		return "", err
	}
	others, err := f.World.Running(ctx, operator.Namespace)
	if err != nil {
		return "", err
	}
	pods, err := f.World.Running(ctx, world.ControlPlane(s.Cluster))
	if err != nil {
		return "", err
	}
	var addresses []string
	for i := range others {
		if a, err := netip.ParseAddr(others[i].Status.PodIP); err == nil && a.Is4() && !others[i].Spec.HostNetwork {
			addresses = append(addresses, a.String())
		}
	}
	if len(addresses) == 0 || len(pods) == 0 {
		return "", fmt.Errorf("%d pods in %s and %d in %s have addresses: %w", len(pods), world.ControlPlane(s.Cluster), len(addresses), operator.Namespace, world.ErrNobody)
	}
	rules, cut := fmt.Sprintf(strangers, strings.Join(addresses, ", ")), 0
	var undos []func() error
	defer func() {
		for _, undo := range undos {
			err = errors.Join(err, undo())
		}
	}()
	for i := range pods {
		for _, processes := range world.InPod(string(pods[i].UID)) {
			if undo, e := f.cut(processes[0].PID, rules); e == nil { // a pod may just end
				undos, cut = append(undos, undo), cut+1
			}
			break // all containers of a pod have the same network
		}
	}
	world.Wait(ctx, s.For)
	return fmt.Sprintf("%d pods of %s and %s", cut, world.ControlPlane(s.Cluster), operator.Namespace), nil
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
	cmd := exec.Command("nsenter", append([]string{"--net=/proc/" + strconv.Itoa(pid) + "/ns/net", "nft"}, args...)...) //nolint:noctx // short, and must be done in the end
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
