package sharedingress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"hcp.internal/platform/internal/konnectivity/waiting"
)

// Limits of a Proxy.
type Limits struct {
	// Connections is how many there may be at once, PerBackend how many to one backend, PerCluster how many to all of a hosted cluster: a tenant can't
	// take all. See shareOf.
	Connections, PerBackend, PerCluster int64
	// Beginning is how many may not have said yet where they want to go. The address with most of them gives up its oldest for one more. See beginningOf.
	Beginning int
	// Begin is how long a client may take until it is known where it wants to go, Dial how long a backend may take to accept.
	Begin, Dial time.Duration
	// HalfClosed is how long a connection may go on after one side has said all. TLS needs moments.
	HalfClosed time.Duration
	// LameDuck is how long new connections are still taken after the proxy was told to stop: whoever sends clients learns of it only after a moment.
	LameDuck time.Duration
	// Drain is how long connections may go on after that.
	Drain time.Duration
}

// toEnd is for what a program does besides waiting for connections when it stops.
const toEnd = 5 * time.Second

// Stop is how long a program with such a proxy may take to stop.
func (l Limits) Stop() time.Duration { return l.LameDuck + l.Drain + toEnd }

// DefaultLimits are those of the published shared ingress, with a share for each backend and hosted cluster.
func DefaultLimits() Limits {
	const connections, perBackend = 20_000, 5_000
	return Limits{
		Connections: connections, PerBackend: perBackend, PerCluster: shareOf(connections, perBackend), Beginning: beginningOf(connections),
		Begin: 5 * time.Second, Dial: 10 * time.Second, HalfClosed: time.Minute, LameDuck: 15 * time.Second, Drain: 30 * time.Second,
	}
}

// shareOf is how many of all connections one hosted cluster may have: three tenths, so that it takes four to use all; more only if so many are meant for
// one of its servers.
func shareOf(connections, perBackend int64) int64 { return max(connections*3/10, perBackend) }

// mostBeginning bounds the memory of clients that have not said yet where they want to go: each may take 64 KiB.
const mostBeginning = 2_000

// beginningOf is how many of all connections may not have said yet where they want to go: a tenth, so that clients that say nothing keep nobody out.
func beginningOf(connections int64) int { return int(min(max(connections/10, 1), mostBeginning)) }

// Proxy leads connections to backends. Make it with NewProxy.
type Proxy struct {
	limits  Limits
	table   atomic.Pointer[Table]
	open    atomic.Int64
	begin   *waiting.Room // of those that have not said yet where they want to go
	results *prometheus.CounterVec
	gauge   prometheus.GaugeFunc
}

// NewProxy makes a proxy that knows no backend yet.
func NewProxy(limits Limits) *Proxy {
	p := &Proxy{limits: limits, begin: waiting.New(limits.Beginning)}
	p.results = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hypershift_shared_ingress_connections_total",
		Help: "Connections to the shared endpoint by how they were led (name or cluster) and what became of them."}, []string{"by", "result"})
	p.gauge = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "hypershift_shared_ingress_connections", Help: "Connections that are open at the shared endpoint."},
		func() float64 { return float64(p.open.Load()) })
	p.table.Store(&Table{})
	return p
}

// Register adds the metrics.
func (p *Proxy) Register(r prometheus.Registerer) error {
	return errors.Join(r.Register(p.results), r.Register(p.gauge))
}

// Use replaces the table. Connections that are open stay.
func (p *Proxy) Use(t *Table) { p.table.Store(t) }

// Table is the one in use.
func (p *Proxy) Table() *Table { return p.table.Load() }

// What became of a connection.
const (
	led         = "led"
	unreadable  = "unreadable"  // what it began with
	unknown     = "unknown"     // no backend
	refused     = "refused"     // from a network that is not allowed
	full        = "full"        // too many
	unreachable = "unreachable" // the backend
)

// errResult is why a connection was not led.
type errResult struct {
	result string
	err    error
}

func (e *errResult) Error() string { return e.err.Error() }

// Serve accepts connections until Limits.LameDuck after ctx has ended, and closes the listener then. withHeader says that they begin with a PROXY header. It
// returns when all are closed: by themselves, or after Limits.Drain.
func (p *Proxy) Serve(ctx context.Context, l net.Listener, withHeader bool) error {
	by := "name"
	if withHeader {
		by = "cluster"
	}
	var conns sync.WaitGroup
	// What is open may end by itself for a while after ctx has ended.
	own, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	accepting, end := context.WithCancel(own)
	defer end()
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(p.limits.LameDuck):
		case <-accepting.Done(): // it failed meanwhile
		}
		end()
		_ = l.Close()
	})
	defer stop()
	for {
		conn, err := l.Accept()
		if accepting.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			break
		}
		if err != nil {
			if !passes(err) {
				return fmt.Errorf("accepting connections: %w", err)
			}
			p.results.WithLabelValues(by, full).Inc()
			select {
			case <-accepting.Done():
			case <-time.After(acceptAgain):
			}
			continue
		}
		if p.open.Add(1) > p.limits.Connections {
			p.open.Add(-1)
			_ = conn.Close()
			p.results.WithLabelValues(by, full).Inc()
			continue
		}
		if evicted := p.begin.Enter(conn); evicted != nil {
			_ = evicted.Close() // whoever waits for its name counts it
		}
		conns.Go(func() {
			defer p.open.Add(-1)
			if err := p.lead(own, conn, withHeader, func() { p.results.WithLabelValues(by, led).Inc() }); err != nil {
				p.results.WithLabelValues(by, err.result).Inc()
				ctrl.LoggerFrom(ctx).V(1).Info("did not lead a connection", "client", conn.RemoteAddr().String(), "result", err.result, "error", err.Error())
			}
		})
	}
	done := make(chan struct{})
	go func() { conns.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(p.limits.Drain):
		cut()
		<-done
	}
	return nil
}

// acceptAgain is how long to wait when a connection can't be accepted now.
const acceptAgain = 50 * time.Millisecond

// passes tells that accepting may work again in a moment: the machine has no file or memory left for one more connection, or the client went away. All
// that are open would be lost if the proxy ended for that.
func passes(err error) bool {
	for _, number := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EPROTO} {
		if errors.Is(err, number) {
			return true
		}
	}
	return false
}

// lead brings one connection to its backend, and closes it in the end. begun is called when both ends are connected.
func (p *Proxy) lead(ctx context.Context, conn net.Conn, withHeader bool, begun func()) *errResult {
	defer conn.Close()
	end := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer end()
	_ = conn.SetDeadline(time.Now().Add(p.limits.Begin)) // of an open connection it can't fail
	b, first, failed := p.choose(conn, withHeader)
	if !p.begin.Leave(conn) {
		return &errResult{full, fmt.Errorf("%d connections have not said where they want to go, and most of them come from this one's address", p.limits.Beginning)}
	}
	if failed != nil {
		return failed
	}
	if failed := p.take(b); failed != nil {
		return failed
	}
	defer b.leave()
	dial, cancel := context.WithTimeout(ctx, p.limits.Dial)
	defer cancel()
	backend, err := (&net.Dialer{}).DialContext(dial, "tcp", b.Address)
	if err != nil {
		return &errResult{unreachable, err}
	}
	defer backend.Close()
	stop := context.AfterFunc(ctx, func() { _ = backend.Close() })
	defer stop()
	if _, err := backend.Write(first); err != nil {
		return &errResult{unreachable, err}
	}
	_ = conn.SetDeadline(time.Time{})
	begun()
	var both sync.WaitGroup
	both.Go(func() { p.pipe(backend, conn) })
	p.pipe(conn, backend)
	both.Wait()
	return nil
}

// take counts a connection to a backend, unless it or its hosted cluster has too many.
func (p *Proxy) take(b *Backend) *errResult {
	if b.open.Add(1) > p.limits.PerBackend {
		b.open.Add(-1)
		return &errResult{full, fmt.Errorf("%s has %d connections", b.Name, p.limits.PerBackend)}
	}
	if b.cluster.Add(1) > p.limits.PerCluster {
		b.leave()
		return &errResult{full, fmt.Errorf("the hosted cluster of %s has %d connections to all of its servers", b.Name, p.limits.PerCluster)}
	}
	return nil
}

// pipe copies until one side ends, and hands the end on; what goes the other way has to end soon after that. A side that fails takes the other along.
func (p *Proxy) pipe(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		_ = from.Close()
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		end := time.Now().Add(p.limits.HalfClosed)
		_ = to.SetReadDeadline(end)
		_ = from.SetWriteDeadline(end) // it may read no more, either
		return
	}
	_ = to.Close()
}

// choose reads how a connection begins, and finds its backend. first is what the backend has to be given of it.
func (p *Proxy) choose(conn net.Conn, withHeader bool) (b *Backend, first []byte, _ *errResult) {
	table := p.table.Load()
	if withHeader {
		r := bufio.NewReaderSize(conn, maxHeader)
		h, err := readHeader(r)
		if err != nil {
			return nil, nil, &errResult{unreadable, err}
		}
		if b = table.Cluster(h.Cluster); b == nil {
			return nil, nil, &errResult{unknown, fmt.Errorf("no hosted cluster has the ID %.64q", h.Cluster)}
		}
		first = make([]byte, r.Buffered())
		if _, err := io.ReadFull(r, first); err != nil { // it is there already
			return nil, nil, &errResult{unreadable, err}
		}
	} else {
		name, read, err := serverName(conn)
		if err != nil {
			return nil, nil, &errResult{unreadable, err}
		}
		if b = table.Named(name); b == nil {
			return nil, nil, &errResult{unknown, fmt.Errorf("nothing has the name %.253q", name)}
		}
		first = read
	}
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || !b.allows(peer.Addr()) {
		return nil, nil, &errResult{refused, fmt.Errorf("%s takes no clients from %s", b.Name, conn.RemoteAddr())}
	}
	return b, first, nil
}
