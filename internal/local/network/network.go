// Package network gives the local cluster its bridge, its routes and a guard in the packet filter.
//
// The bridge's address is the node's. Pods hang on the bridge; the ranges of services and load balancers are routed to
// it too, so that a packet which kube-proxy does not rewrite finds nobody there instead of leaving the machine. The
// guard drops what would leave or enter by another link all the same. The global forwarding switch is not touched
// unless pods may reach beyond the machine: the bridge alone forwards.
package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Fixed addresses of local mode. There is one instance per machine.
const (
	Bridge           = "hcp0"
	NodeIP           = "10.244.0.1"
	NodePrefix       = "10.244.0.1/24"
	PodCIDR          = "10.244.0.0/24"
	ClusterCIDR      = "10.244.0.0/16"
	ServiceCIDR      = "10.96.0.0/16"
	APIServiceIP     = "10.96.0.1"
	DNSServiceIP     = "10.96.0.10"
	LoadBalancerCIDR = "10.97.0.0/24"
	Table            = "hypershift_local" // of nftables, family inet
	ProxyTable       = "kube-proxy"       // made by kube-proxy in families ip and ip6
	Group            = "hypershift-local" // the control group that every process of ours is in or below
)

// bridgeMAC is fixed, because a bridge without one takes the lowest address of its ports, and every pod that comes or
// goes would then make its neighbours' ARP entries stale. Locally administered.
const bridgeMAC = "02:68:63:70:30:01"

// routed are the ranges that end at the bridge, beside the bridge's own subnet.
var routed = []string{ClusterCIDR, ServiceCIDR, LoadBalancerCIDR}

// Options are what the user may choose.
type Options struct {
	PodEgress bool // pods may reach beyond the machine, behind its address
}

// Ensure makes what is missing. It is cheap when all is there.
func Ensure(ctx context.Context, opts Options) error {
	if err := ensureBridge(ctx); err != nil {
		return err
	}
	for _, r := range routed {
		if err := run(ctx, nil, "ip", "route", "replace", r, "dev", Bridge, "src", NodeIP); err != nil {
			return err
		}
	}
	for key, value := range settings(opts) {
		err := os.WriteFile(settingsDir+key, []byte(value), 0o644)
		if err != nil && !(strings.HasPrefix(key, "ipv6") && errors.Is(err, os.ErrNotExist)) {
			return fmt.Errorf("setting net/%s: %w", key, err)
		}
	}
	if err := run(ctx, []byte(ruleset(opts)), "nft", "-f", "-"); err != nil {
		return err
	}
	if _, err := letPass(ctx, opts, onHost); err != nil {
		return fmt.Errorf("letting packets of pods pass the machine's firewall: %w", err)
	}
	return nil
}

func ensureBridge(ctx context.Context) error {
	if Present() {
		return nil
	}
	if _, err := net.InterfaceByName(Bridge); err != nil {
		// Bridged packets must pass conntrack, or an answer that goes from pod to pod directly keeps the pod's address
		// where the other side expects the service's. The switch of this bridge alone is enough.
		if err := run(ctx, nil, "ip", "link", "add", Bridge, "address", bridgeMAC, "type", "bridge", "nf_call_iptables", "1"); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"link", "set", Bridge, "up"},
		{"address", "replace", NodePrefix, "dev", Bridge},
	} {
		if err := run(ctx, nil, "ip", args...); err != nil {
			return err
		}
	}
	return nil
}

// settingsDir is where the kernel's settings of networks are.
const settingsDir = "/proc/sys/net/"

// settings are those that have to be so.
func settings(opts Options) map[string]string {
	out := map[string]string{
		"ipv4/conf/" + Bridge + "/forwarding":     "1",
		"ipv4/conf/" + Bridge + "/send_redirects": "0",
		"ipv4/conf/" + Bridge + "/rp_filter":      "0",
		"ipv6/conf/" + Bridge + "/disable_ipv6":   "1",
	}
	if opts.PodEgress {
		out["ipv4/ip_forward"] = "1" // answers from beyond come in by another link, which has to forward too; "down" restores the setting
	}
	return out
}

// Present tells whether the bridge is up with its address.
func Present() bool {
	link, err := net.InterfaceByName(Bridge)
	if err != nil || link.Flags&net.FlagUp == 0 {
		return false
	}
	addrs, err := link.Addrs()
	return err == nil && slices.ContainsFunc(addrs, func(a net.Addr) bool { return a.String() == NodePrefix })
}

// ruleset replaces our table as a whole, in one transaction.
func ruleset(opts Options) string {
	ranges := "{ " + strings.Join([]string{ClusterCIDR, ServiceCIDR, LoadBalancerCIDR}, ", ") + " }"
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %[1]s {}\ndelete table inet %[1]s\ntable inet %[1]s {\n", Table)
	fmt.Fprintf(&b, "  chain arriving { type filter hook prerouting priority raw; iifname != { \"lo\", %q } ip daddr %s drop; }\n", Bridge, ranges)
	fmt.Fprintf(&b, "  chain leaving { type filter hook postrouting priority 300; oifname != { \"lo\", %q } ip daddr %s drop; }\n", Bridge, ranges)
	// Before kube-proxy has heard of a new service it drops what goes there, and a client waits for its own time limit instead of
	// trying again. The chains come before kube-proxy's, and after it has rewritten what it knows.
	for _, hook := range []string{"forward", "output"} {
		services := "{ " + ServiceCIDR + ", " + LoadBalancerCIDR + " }"
		fmt.Fprintf(&b, "  chain unknown_%[1]s { type filter hook %[1]s priority -1; ip daddr %[2]s meta l4proto tcp reject with tcp reset; }\n", hook, services)
	}
	if opts.PodEgress {
		fmt.Fprintf(&b, "  chain egress { type nat hook postrouting priority srcnat; ip saddr %s oifname != { \"lo\", %q } masquerade; }\n", ClusterCIDR, Bridge)
	} else {
		fmt.Fprintf(&b, "  chain egress { type filter hook forward priority filter; iifname %[1]q oifname != %[1]q reject; }\n", Bridge)
	}
	b.WriteString("}\n")
	return b.String()
}

// maxOutput bounds what of a command's output goes into an error.
const maxOutput = 2000

func run(ctx context.Context, stdin []byte, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		text := strings.TrimSpace(string(out[:min(len(out), maxOutput)]))
		return fmt.Errorf("running %s %s: %w: %s", name, strings.Join(args, " "), err, text)
	}
	return nil
}
