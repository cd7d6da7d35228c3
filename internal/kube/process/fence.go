package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Fence keeps a process from writing once its lease may be somebody else's.
//
// Leader election ends a process that could not renew its lease, but one that stood still (a paused machine, SIGSTOP, a host without memory) does not know
// yet: when it goes on, its workers send what they were about to send, over what the next leader has written meanwhile. What we apply by force knows no
// version that would refuse it. So every request passes here, and here the time since the lease was renewed is known. It is looked at once more when bytes
// of a request go to the network: a process mostly stands still somewhere between the two, since a request waits there for its connection.
//
// What was handed to the network before the process stood still can't be held back.
type Fence struct {
	clock clock.PassiveClock // its readings must go on while the process stands still
	lease string             // path of the lease

	mu      sync.Mutex
	renewed time.Time // when the last renewal that succeeded was sent; zero: the lease was never ours
	given   bool      // the lease was given back, for good
}

// NewFence watches renewals of a lease.
func NewFence(namespace, name string, clk clock.PassiveClock) *Fence {
	return &Fence{clock: clk, lease: "/namespaces/" + namespace + "/leases/" + name}
}

// Attach returns a copy of the configuration whose clients pass here. The renewals must be made by one of them. It fails for a configuration without a way
// to the API server, such as one with certificates that can't be read.
//
// What writes has connections of its own, so that reads and renewals go on over theirs.
func (f *Fence) Attach(cfg *rest.Config) (*rest.Config, error) {
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTime, KeepAlive: dialTime}).DialContext
	}
	to := rest.CopyConfig(cfg)
	to.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return guarded{conn, f}, nil
	}
	writes, err := rest.TransportFor(to)
	if err != nil {
		return nil, fmt.Errorf("setting up the connection to %s: %w", cfg.Host, err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return fenced{next, writes, f} })
	return cfg, nil
}

// dialTime is how long a connection may take, and how often one is looked after, as in client-go.
const dialTime = 30 * time.Second

// guarded is a connection for what writes.
type guarded struct {
	net.Conn
	fence *Fence
}

// Write implements net.Conn.
func (c guarded) Write(b []byte) (int, error) {
	if err := c.fence.check(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

type fenced struct {
	http.RoundTripper // for reads and the lease
	writes            http.RoundTripper
	fence             *Fence
}

// WrappedRoundTripper lets client-go find the connection beneath.
func (r fenced) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r fenced) RoundTrip(req *http.Request) (*http.Response, error) {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return r.RoundTripper.RoundTrip(req)
	}
	if strings.HasSuffix(req.URL.Path, r.fence.lease) {
		sent := r.fence.clock.Now()
		resp, err := r.RoundTripper.RoundTrip(req)
		if err == nil && resp.StatusCode < http.StatusMultipleChoices {
			r.fence.note(sent)
		}
		return resp, err
	}
	if err := r.fence.check(); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // which a RoundTripper has to do
		}
		return nil, err
	}
	return r.writes.RoundTrip(req)
}

// close keeps everything from being written from now on: the lease is given back, and whoever wants it has it at once.
func (f *Fence) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.given = true
}

func (f *Fence) note(sent time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = sent
}

// check fails once another process may have taken the lease up, which it does LeaseDuration after it has seen the last renewal at the earliest.
func (f *Fence) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.given {
		return errors.New("nothing is written: the lease was given back, so another process may be the leader")
	}
	if f.renewed.IsZero() {
		return nil
	}
	if age := f.clock.Since(f.renewed); age >= LeaseDuration {
		return fmt.Errorf("nothing is written: the lease was renewed %s ago, so another process may be the leader", age.Round(time.Second))
	}
	return nil
}
