package network

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// firewalld has its own table, whose chains refuse what comes in or is forwarded by a link without a zone, whatever iptables accepts.
const (
	firewalldTable = "firewalld"
	trustedZone    = "trusted" // accepts everything; each installation has it
	firewallCmd    = "firewall-cmd"
	// notRunning is how firewall-cmd ends without a firewalld.
	notRunning = 252
)

// trust puts the bridge into the zone of firewalld that accepts everything, until firewalld is loaded anew. Without firewalld it does nothing. changed: the
// bridge wasn't there.
func trust(ctx context.Context, do runs) (changed bool, err error) {
	rules, err := firewalldRules(ctx, do)
	if err != nil || trusted(rules) {
		return false, nil //nolint:nilerr // because without such a table there is no firewalld
	}
	if _, err := do(ctx, firewallCmd, "--zone="+trustedZone, "--change-interface="+Bridge); err != nil {
		return false, fmt.Errorf("putting %s into the zone %s of firewalld, which drops what pods send: %w", Bridge, trustedZone, err)
	}
	return true, nil
}

// distrust takes the bridge out of the zone. A firewalld that doesn't run has forgotten it.
func distrust(ctx context.Context, do runs) error {
	rules, err := firewalldRules(ctx, do)
	if err != nil || !trusted(rules) {
		return nil //nolint:nilerr // because without such a table there is no firewalld
	}
	_, err = do(ctx, firewallCmd, "--zone="+trustedZone, "--remove-interface="+Bridge)
	var exit *exec.ExitError
	if errors.Is(err, exec.ErrNotFound) || errors.As(err, &exit) && exit.ExitCode() == notRunning {
		return nil
	}
	if err != nil {
		return fmt.Errorf("taking %s out of the zone %s of firewalld: %w", Bridge, trustedZone, err)
	}
	return nil
}

// firewalldRules are those of firewalld. They tell at once what firewall-cmd, a program in Python, would tell after a while.
func firewalldRules(ctx context.Context, do runs) (string, error) {
	return do(ctx, "nft", "list", "table", "inet", firewalldTable)
}

// trusted tells whether what comes by the bridge goes to the trusted zone.
func trusted(rules string) bool {
	return slices.ContainsFunc(strings.Split(rules, "\n"), func(rule string) bool {
		return strings.Contains(rule, `iifname "`+Bridge+`"`) && strings.Contains(rule, "filter_IN_"+trustedZone)
	})
}

// TryFirewall says why a firewall of this machine can't be had to let pods pass; nil: it can, or there is none. It changes nothing.
func TryFirewall(ctx context.Context) error {
	if has, err := HasChain(FamilyInet, firewalldTable, "filter_INPUT"); err != nil || !has {
		return nil //nolint:nilerr // because a kernel without such tables has no firewalld
	}
	return tryFirewalld(ctx, onHost)
}

func tryFirewalld(ctx context.Context, do runs) error {
	if rules, err := firewalldRules(ctx, do); err == nil && trusted(rules) {
		return nil // it has been asked already
	}
	if _, err := do(ctx, firewallCmd, "--state"); err != nil {
		return fmt.Errorf("the rules of firewalld are in force, but it doesn't answer: %w", err)
	}
	return nil
}
