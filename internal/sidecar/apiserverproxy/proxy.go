package apiserverproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxConnections at a time. A node has some hundred pods with a few connections each.
	maxConnections = 10_000
	// halfClosed is how long a connection is kept after one side has closed its half. TLS needs moments.
	halfClosed = time.Minute
	// unanswered is how long the other end may leave data unacknowledged before the connection is closed.
	unanswered = 30 * time.Second
	// handover is how long a listener that others have taken over still accepts: handshakes of before must end.
	handover = 500 * time.Millisecond
	// mostLate is how often it does so once more, since somebody waits: without a successor, others may come for ever.
	mostLate = 10
	// complain at most so often about a target that can't be reached.
	complain = 10 * time.Second
)

// keepAlive finds peers that are gone without a word in a minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

// proxy passes connections on.
type proxy struct {
	target *target
	log    *slog.Logger

	slots      chan struct{}
	mu         sync.Mutex
	open       sync.WaitGroup
	complained time.Time
}

func newProxy(t *target, log *slog.Logger) *proxy {
	return &proxy{target: t, log: log, slots: make(chan struct{}, maxConnections)}
}

// listen opens a socket that another process may have open, too, on an address that need not be there yet.
func listen(ctx context.Context, address netip.AddrPort) (*net.TCPListener, error) {
	config := net.ListenConfig{KeepAliveConfig: keepAlive, Control: func(_, _ string, raw syscall.RawConn) error {
		return control(raw, func(fd int) error {
			free := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
			if address.Addr().Is6() {
				free = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
			}
			return errors.Join(free, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1), setUserTimeout(fd))
		})
	}}
	config.SetMultipathTCP(false) // giveWay is for plain TCP
	l, err := config.Listen(ctx, "tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return l.(*net.TCPListener), nil
}

// giveWay sends new connections to the other process that listens on the address, if there is one. Without it, the kernel would go on
// to share them out, and reset those that nobody accepted when the listener is closed.
func giveWay(l *net.TCPListener) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return fmt.Errorf("reaching the socket: %w", err)
	}
	// The listeners of an address are numbered by age, beginning with 0. A number that nobody has means: as without a program.
	second := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1}}
	return control(raw, func(fd int) error {
		err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: uint16(len(second)), Filter: &second[0]})
		if err != nil {
			return fmt.Errorf("setting SO_ATTACH_REUSEPORT_CBPF: %w", err)
		}
		return nil
	})
}

func control(raw syscall.RawConn, set func(fd int) error) error {
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = set(int(fd)) }); err != nil {
		return fmt.Errorf("setting options of a socket: %w", err)
	}
	return inner
}

func setUserTimeout(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered.Milliseconds())); err != nil {
		return fmt.Errorf("setting TCP_USER_TIMEOUT: %w", err)
	}
	return nil
}

func giveUp(_, _ string, raw syscall.RawConn) error { return control(raw, setUserTimeout) }

// serve accepts until ctx ends, then waits for open connections up to drain, and leaves the rest to the end of the process.
func (p *proxy) serve(ctx context.Context, l *net.TCPListener, drain time.Duration) error {
	stop := context.AfterFunc(ctx, func() {
		if err := giveWay(l); err != nil {
			p.log.Error("connections that come at this moment may be lost", "error", err)
		}
		_ = l.SetDeadline(time.Now().Add(handover))
	})
	defer stop()
	defer l.Close()
	for late := 0; ; {
		conn, err := l.AcceptTCP()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				if late++; late > mostLate || !waits(l) {
					break
				}
				_ = l.SetDeadline(time.Now().Add(handover))
				continue
			}
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("accepting: %w", err)
			}
			<-time.After(10 * time.Millisecond) // out of file descriptors, for example: let some be closed
			continue
		}
		select {
		case p.slots <- struct{}{}:
		default:
			refuse(conn)
			continue
		}
		p.open.Add(1)
		go func() {
			defer func() { <-p.slots; p.open.Done() }()
			p.handle(context.WithoutCancel(ctx), conn)
		}()
	}
	_ = l.Close()
	done := make(chan struct{})
	go func() { p.open.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(drain):
	}
	return nil
}

// waits says that a connection waits to be accepted. Accept looks at its deadline first: who stood still until then would close connections that clients have.
func waits(l *net.TCPListener) bool {
	raw, err := l.SyscallConn()
	if err != nil {
		return false
	}
	there := false
	_ = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		there = err == nil && n > 0
	})
	return there
}

func (p *proxy) handle(ctx context.Context, client *net.TCPConn) {
	server, err := p.target.connect(ctx)
	if err != nil {
		refuse(client)
		p.mu.Lock()
		defer p.mu.Unlock()
		if now := time.Now(); now.Sub(p.complained) >= complain {
			p.complained = now
			p.log.Error("the API can't be reached", "target", p.target.host, "error", err)
		}
		return
	}
	relay(client, server)
}

// refuse ends a connection so that the client sees an error, not an end.
func refuse(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// relay passes bytes both ways until both sides have said all, or one has failed. The kernel moves them (splice).
func relay(a, b *net.TCPConn) {
	var failed sync.Once
	var both sync.WaitGroup
	pass := func(to, from *net.TCPConn) {
		if _, err := io.Copy(to, from); err != nil {
			failed.Do(func() { refuse(a); refuse(b) })
			return
		}
		_ = to.CloseWrite()
		_ = to.SetReadDeadline(time.Now().Add(halfClosed))
	}
	both.Go(func() { pass(a, b) })
	both.Go(func() { pass(b, a) })
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}
