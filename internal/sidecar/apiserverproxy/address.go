package apiserverproxy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ownInterval is between two looks at whether the address is there: whoever sets up a node's network may take it away.
const ownInterval = 5 * time.Second

// owner keeps an address on a link.
type owner struct {
	link    string
	address netip.Addr
	log     *slog.Logger

	mu  sync.Mutex
	err error // of the last look
}

// look adds the address where it is missing.
func (o *owner) look() error {
	err := own(o.link, o.address)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil && o.err == nil {
		o.log.Error("the advertised address can't be taken", "address", o.address, "error", err)
	}
	o.err = err
	return err
}

func (o *owner) last() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// run looks again and again until ctx ends.
func (o *owner) run(ctx context.Context) {
	ticker := time.NewTicker(ownInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = o.look()
		}
	}
}

// own puts address on link, for itself alone: other machines of the network can't have it in common with this one.
func own(link string, address netip.Addr) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return fmt.Errorf("looking for link %s: %w", link, err)
	}
	family := netlink.FAMILY_V4
	flags := 0
	if address.Is6() {
		family, flags = netlink.FAMILY_V6, unix.IFA_F_NODAD // nobody else is to be asked for it
	}
	have, err := netlink.AddrList(l, family)
	if err != nil {
		return fmt.Errorf("reading the addresses of link %s: %w", link, err)
	}
	for _, a := range have {
		if ip, ok := netip.AddrFromSlice(a.IP); ok && ip.Unmap() == address {
			return nil
		}
	}
	bits := address.BitLen()
	add := &netlink.Addr{
		IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(bits, bits)},
		Scope: unix.RT_SCOPE_HOST, Flags: flags,
	}
	if err := netlink.AddrReplace(l, add); err != nil {
		return fmt.Errorf("adding %s to link %s: %w", address, link, err)
	}
	return nil
}
