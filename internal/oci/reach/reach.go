// Package reach keeps operators from asking addresses that no registry has.
//
// Names of registries are chosen by tenants and by who writes packages, and registries name further hosts, for tokens and blobs. An operator that follows
// them speaks from inside of the management cluster's network, so addresses are looked at once a name has been looked up: no name leads around that.
package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrRefused says that an address was not asked.
var ErrRefused = errors.New("the registry's address is one that is never asked: link-local ones, where clouds serve credentials, and networks that the administrator refuses")

const keepAlive = 30 * time.Second

// Refused are networks in which there is no registry, besides the link-local ones, multicast and the unspecified address.
type Refused []netip.Prefix

// Parse reads networks, separated by commas: 10.96.0.0/12,fd00::/8. One address is a network of its own.
func Parse(text string) (Refused, error) {
	var out Refused
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if addr, err := netip.ParseAddr(item); err == nil {
			addr = addr.Unmap()
			out = append(out, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(item)
		if err != nil {
			return nil, fmt.Errorf("%q is no network: write address/bits, such as 10.96.0.0/12, separated by commas", item)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// Has says whether an address must not be asked.
func (r Refused) Has(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || slices.ContainsFunc(r, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// DialContext connects within the time, to addresses that are not refused.
func (r Refused) DialContext(within time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: within, KeepAlive: keepAlive, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if r.Has(at.Addr()) {
			return ErrRefused
		}
		return nil
	}}
	return dialer.DialContext
}
