package konnectivity

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"
)

// errForbidden is why a target is refused.
type errForbidden struct{ error }

func (e errForbidden) Unwrap() error { return e.error }

// connect is a CONNECT request of a server, for one tunnel.
func (a *Agent) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		refuse(w, http.StatusMethodNotAllowed, "only CONNECT is served")
		return
	}
	to, err := parseTarget(r.Host)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	conn, err := a.dial(r.Context(), to)
	if err != nil {
		status, reason := explain(err)
		a.Log.Debug("no connection", "target", to.String(), "error", err.Error())
		refuse(w, status, reason)
		return
	}
	defer conn.Close()
	// The server gives a tunnel up by resetting its stream, which ends the request's context.
	stop := context.AfterFunc(r.Context(), func() { _ = conn.Close() })
	defer stop()
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	if err := flush(); err != nil {
		return
	}
	go forward(conn, r.Body)
	_ = copyAll(w, conn, flush)
}

// forward sends what comes through the tunnel to the target. It ends with the request: its body can't be read afterwards.
func forward(conn net.Conn, body io.Reader) {
	if err := copyAll(conn, body, nil); err != nil {
		_ = conn.Close()
		return
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

func refuse(w http.ResponseWriter, status int, reason string) {
	w.Header().Set(reasonHeader, printable(reason, maxReasonLength))
	w.WriteHeader(status)
}

// dial connects to a target. Names are resolved here, and the address that a name has is what is judged.
func (a *Agent) dial(ctx context.Context, to target) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	allow := a.Allow
	if allow == nil {
		allow = allowAddress
	}
	dialer := &net.Dialer{Control: func(network, address string, _ syscall.RawConn) error { return allow(network, address) }}
	return dialer.DialContext(ctx, "tcp", to.String())
}

func allowAddress(_, address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return errForbidden{err}
	}
	if err := allowed(ap.Addr()); err != nil {
		return errForbidden{err}
	}
	return nil
}

// explain says in our words why a target can't be reached, and whose fault it is by the status: 503 is the agent's own, for
// which another agent is worth a try.
func explain(err error) (status int, reason string) {
	var dns *net.DNSError
	switch {
	case errors.As(err, new(errForbidden)):
		return http.StatusForbidden, err.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return http.StatusGatewayTimeout, "the target doesn't answer"
	case errors.Is(err, syscall.ECONNREFUSED):
		return http.StatusBadGateway, "the target refuses the connection"
	case errors.As(err, &dns):
		return http.StatusBadGateway, "the target's name doesn't resolve"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.ENOBUFS):
		return http.StatusServiceUnavailable, "the agent has no resources left"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return http.StatusServiceUnavailable, "the agent has no route to the target"
	default:
		return http.StatusBadGateway, "the target can't be reached"
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
