package network

import (
	"context"
	"os/exec"
	"slices"
	"strings"
)

// forwardComment marks our rules in the chain FORWARD of the machine.
const forwardComment = "hypershift-local"

// iptables runs the program of that name. It is a parameter, so that tests work in a network namespace of their own.
type iptables func(ctx context.Context, args ...string) (stdout string, err error)

// hostIptables works on the machine itself.
func hostIptables(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "iptables", append([]string{"-w", "5"}, args...)...).Output()
	return string(out), err
}

// forwardRules are what a machine that drops what it forwards has to let pass. A verdict of our own table doesn't help there:
// a packet passes only when no chain at all drops it. Packets between pods are in, because bridged ones pass the filter, too.
func forwardRules(opts Options) [][]string {
	comment := []string{"-m", "comment", "--comment", forwardComment, "-j", "ACCEPT"}
	if !opts.PodEgress {
		return [][]string{append([]string{"-i", Bridge, "-o", Bridge}, comment...)}
	}
	return [][]string{
		append([]string{"-i", Bridge}, comment...),
		append([]string{"-o", Bridge, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED"}, comment...),
	}
}

// allowForwarding adds our rules where the policy of FORWARD is DROP, as container engines and firewalls set it. Elsewhere, and
// where there is no iptables, it changes nothing. added: a rule of ours was not there.
func allowForwarding(ctx context.Context, opts Options, do iptables) (added bool, err error) {
	rules, err := do(ctx, "-S", "FORWARD")
	if err != nil {
		return false, nil //nolint:nilerr // because without iptables there is no such chain, and nothing drops
	}
	if !slices.Contains(strings.Split(rules, "\n"), "-P FORWARD DROP") {
		return false, nil
	}
	for _, rule := range forwardRules(opts) {
		if _, err := do(ctx, append([]string{"-C", "FORWARD"}, rule...)...); err == nil {
			continue
		}
		if _, err := do(ctx, append([]string{"-I", "FORWARD", "1"}, rule...)...); err != nil {
			return added, err
		}
		added = true
	}
	return added, nil
}

// RemoveForwarding takes our rules out of the chain FORWARD. It does nothing where there are none.
func RemoveForwarding(ctx context.Context) error { return removeForwarding(ctx, hostIptables) }

func removeForwarding(ctx context.Context, do iptables) error {
	rules, err := do(ctx, "-S", "FORWARD")
	if err != nil {
		return nil // without iptables there are no rules
	}
	for line := range strings.SplitSeq(rules, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "-A" || !slices.Contains(fields, forwardComment) {
			continue
		}
		if _, err := do(ctx, append([]string{"-D"}, fields[1:]...)...); err != nil {
			return err
		}
	}
	return nil
}
