package network

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// firewallComment marks our rules in the chains of the machine.
const firewallComment = "hypershift-local"

// runs starts a program and returns what it prints. It is a parameter, so that tests work in a network namespace of their own.
type runs func(ctx context.Context, name string, args ...string) (stdout string, err error)

// patience is how long a program of the machine's firewall may take; firewall-cmd waits for a daemon.
const patience = 30 * time.Second

// onHost works on the machine itself.
func onHost(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		text := strings.TrimSpace(string(exit.Stderr[:min(len(exit.Stderr), maxOutput)]))
		err = fmt.Errorf("running %s %s: %w: %s", name, strings.Join(args, " "), err, text)
	}
	return string(out), err
}

// letPass has the machine's firewalls let pass what pods send and get. A verdict of our own table doesn't help there: a packet passes only when no chain at
// all drops it. changed: one of them would have dropped that.
func letPass(ctx context.Context, opts Options, do runs) (changed bool, err error) {
	added, err := allow(ctx, opts, do)
	trusted, ferr := trust(ctx, do)
	return added || trusted, errors.Join(err, ferr)
}

// LeaveFirewalls undoes what lets pods pass the machine's firewalls. It does nothing where there is nothing to undo.
func LeaveFirewalls(ctx context.Context) error { return leave(ctx, onHost) }

func leave(ctx context.Context, do runs) error {
	return errors.Join(disallow(ctx, do), distrust(ctx, do))
}

// passing are the rules by which a chain of iptables lets pass what pods send and get.
type passing struct {
	chain string
	rules [][]string
}

func allPassing(opts Options) []passing {
	accept := func(match ...string) []string {
		return append(match, "-m", "comment", "--comment", firewallComment, "-j", "ACCEPT")
	}
	// Packets between pods are forwarded, because bridged ones pass the filter, too.
	forward := [][]string{accept("-i", Bridge, "-o", Bridge)}
	if opts.PodEgress {
		forward = [][]string{accept("-i", Bridge), accept("-o", Bridge, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED")}
	}
	return []passing{
		{"INPUT", [][]string{accept("-i", Bridge)}}, // the API server, DNS and the registry are on the node's address
		{"FORWARD", forward},
		{"OUTPUT", [][]string{accept("-o", Bridge)}}, // the API server's calls of webhooks, and the kubelet's probes
	}
}

func iptables(ctx context.Context, do runs, args ...string) (string, error) {
	return do(ctx, "iptables", append([]string{"-w", "5"}, args...)...)
}

// allow adds our rules to the chains that drop. Elsewhere, and where there is no iptables, it changes nothing. added: a rule of ours was not there.
func allow(ctx context.Context, opts Options, do runs) (added bool, err error) {
	rules, err := iptables(ctx, do, "-S")
	if err != nil {
		return false, nil //nolint:nilerr // because without iptables there are no such chains, and nothing drops
	}
	for _, p := range allPassing(opts) {
		if !drops(strings.Split(rules, "\n"), p.chain) {
			continue
		}
		for _, rule := range p.rules {
			if _, err := iptables(ctx, do, append([]string{"-C", p.chain}, rule...)...); err == nil {
				continue
			}
			if _, err := iptables(ctx, do, append([]string{"-I", p.chain, "1"}, rule...)...); err != nil {
				return added, err
			}
			added = true
		}
	}
	return added, nil
}

// drops tells whether a chain refuses what none of its rules accepts: by its policy, as ufw and container engines set it, or by a rule for everything.
func drops(rules []string, chain string) bool {
	return slices.ContainsFunc(rules, func(rule string) bool {
		return rule == "-P "+chain+" DROP" || rule == "-A "+chain+" -j DROP" || strings.HasPrefix(rule, "-A "+chain+" -j REJECT")
	})
}

// disallow takes our rules out of all chains.
func disallow(ctx context.Context, do runs) error {
	rules, err := iptables(ctx, do, "-S")
	if err != nil {
		return nil //nolint:nilerr // because without iptables there are no rules
	}
	for line := range strings.SplitSeq(rules, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "-A" || !slices.Contains(fields, firewallComment) {
			continue
		}
		if _, err := iptables(ctx, do, append([]string{"-D"}, fields[1:]...)...); err != nil {
			return err
		}
	}
	return nil
}
