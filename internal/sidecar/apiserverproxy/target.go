package apiserverproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// dialTimeout is for a connection with all addresses of the target, attemptTimeout for one of them.
	dialTimeout, attemptTimeout = 10 * time.Second, 3 * time.Second
	// lookupTimeout is for one question; after that, the addresses of before are used.
	lookupTimeout = 3 * time.Second
	// fresh is for how long an answer holds. Clients that all connect anew cause one question.
	fresh = 5 * time.Second
	// maxAddresses of a name that are tried.
	maxAddresses = 8
)

// target is where connections go. It may be used concurrently.
type target struct {
	host string
	port uint16
	self netip.AddrPort // where this program listens: a name that leads there would make connections go round
	// lookup gives the addresses of a name.
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	now    func() time.Time

	mu     sync.Mutex
	known  []netip.Addr // of the last good answer
	until  time.Time    // known needs no question before
	err    error        // of the last question, when nothing is known
	worked netip.Addr   // answered last, and is asked first
}

func newTarget(address string, self netip.AddrPort) (*target, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--target %q is not HOST:PORT", address)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || host == "" {
		return nil, fmt.Errorf("--target %q is not HOST:PORT", address)
	}
	return &target{
		host: host, port: uint16(port), self: self, now: time.Now,
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
	}, nil
}

// connect tries the addresses of the target one after another, first the one that worked last.
func (t *target) connect(ctx context.Context) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addresses, err := t.addresses(ctx)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: attemptTimeout, KeepAliveConfig: keepAlive, Control: giveUp}
	var errs []error
	for _, address := range addresses {
		conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(address, t.port).String())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		t.mu.Lock()
		t.worked = address
		t.mu.Unlock()
		return conn.(*net.TCPConn), nil
	}
	return nil, errors.Join(errs...)
}

func (t *target) addresses(ctx context.Context) ([]netip.Addr, error) {
	if address, err := netip.ParseAddr(t.host); err == nil {
		return t.usable([]netip.Addr{address})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.now().Before(t.until) {
		ask, cancel := context.WithTimeout(ctx, lookupTimeout)
		found, err := t.lookup(ask, t.host)
		cancel()
		if err == nil {
			found, err = t.usable(found)
		}
		t.until = t.now().Add(fresh)
		switch {
		case err == nil:
			t.known, t.err = found, nil
		case len(t.known) == 0:
			t.err, t.until = err, t.now().Add(time.Second)
		}
	}
	if t.err != nil {
		return nil, t.err
	}
	first := slices.Clone(t.known)
	if i := slices.Index(first, t.worked); i > 0 {
		first[0], first[i] = first[i], first[0]
	}
	return first, nil
}

// usable leaves out what leads back to this program.
func (t *target) usable(found []netip.Addr) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, address := range found {
		if address = address.Unmap(); address != t.self.Addr() && len(out) < maxAddresses {
			out = append(out, address)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("%s is the advertised address %s itself, which this node owns: publish the API under another", t.host, t.self.Addr())
	}
	return nil, fmt.Errorf("%s has no address", t.host)
}
