package konnectivity

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"hcp.internal/platform/internal/konnectivity/waiting"
)

// ServerOptions are the settings of a Server.
type ServerOptions struct {
	// ID tells this server from the others that agents connect to; Count is how many there are.
	ID    string
	Count int
	// Front are the certificate that kube-apiserver sees and the authority of its own; Agents those towards agents.
	Front, Agents Files
	// FrontNames and AgentNames are the common names of client certificates that each port takes.
	FrontNames, AgentNames []string
	Protocol               Protocol
	// KeepAlive is how long an agent's connection is silent before it is asked for a sign of life.
	KeepAlive time.Duration
	// MaxAgents and MaxTunnels bound what is held at a time. A tunnel costs up to two windows of 256 KiB.
	MaxAgents, MaxTunnels int
	// HalfClosed is how long a tunnel is kept at least whose client has ended, while nothing moves; 0: HalfClosed.
	HalfClosed time.Duration
	// Once the server was told to stop it makes new tunnels for ShutdownDelay, until nobody is sent to it, and keeps those that exist for DrainTimeout more;
	// 0: five seconds.
	ShutdownDelay, DrainTimeout time.Duration
	Log                         *slog.Logger
	Now                         func() time.Time
}

// Defaults of ServerOptions.
const (
	DefaultMaxAgents  = 2000
	DefaultMaxTunnels = 4000
	// maxHandshakes bounds connections whose client isn't known yet.
	maxHandshakes = 256
	// drainTimeout is how long tunnels may go on after an agent was told to stop, and a server by default.
	drainTimeout = 5 * time.Second
	// farewellTimeout bounds how long it takes to tell agents that a server is about to end.
	farewellTimeout = 5 * time.Second
)

// Server joins kube-apiserver's CONNECT requests with agents.
type Server struct {
	ServerOptions
	agents    *agents
	transport *http2.Transport
	tunnels   chan struct{} // one element for each
	open      sync.WaitGroup
	ready     atomic.Bool

	frontTLS, agentTLS *tls.Config
}

// NewServer reads the certificates.
func NewServer(o ServerOptions) (*Server, error) {
	front, err := load(o.Front, o.Now)
	if err != nil {
		return nil, fmt.Errorf("the certificate towards kube-apiserver: %w", err)
	}
	back, err := load(o.Agents, o.Now)
	if err != nil {
		return nil, fmt.Errorf("the certificate towards agents: %w", err)
	}
	transport, err := newTransport(o.KeepAlive)
	if err != nil {
		return nil, err
	}
	o.DrainTimeout = cmp.Or(o.DrainTimeout, drainTimeout)
	return &Server{
		ServerOptions: o,
		agents:        newAgents(o.MaxAgents, o.Now), transport: transport, tunnels: make(chan struct{}, o.MaxTunnels),
		frontTLS: serverTLS(front, o.Protocol, o.FrontNames), agentTLS: serverTLS(back, o.Protocol, o.AgentNames),
	}, nil
}

// Serve answers on both listeners until ctx ends. Then agents are told to look for the server that comes in its place, which they wouldn't before this one is
// gone: they have met as many as there are. See ShutdownDelay and DrainTimeout for what follows.
func (s *Server) Serve(ctx context.Context, front, agents net.Listener) error {
	frontServer := s.httpServer("front", http.HandlerFunc(s.connect))
	agentServer := s.httpServer("agents", http.HandlerFunc(s.join))
	failed := make(chan error, 2)
	go func() { failed <- frontServer.Serve(tls.NewListener(front, s.frontTLS)) }()
	go func() { failed <- agentServer.Serve(tls.NewListener(agents, s.agentTLS)) }()
	s.ready.Store(true)
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.ready.Store(false)
		s.agents.farewell(context.WithoutCancel(ctx))
		select {
		case err = <-failed:
		case <-time.After(s.ShutdownDelay):
		}
	}
	s.ready.Store(false)
	_ = frontServer.Close() // hijacked connections, which tunnels are, go on
	_ = agentServer.Close()
	drained := make(chan struct{})
	go func() { s.open.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(s.DrainTimeout):
	}
	s.agents.closeAll()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// httpServer is for requests that are short until they take their connection over. How many clients may be unknown at a time
// is bounded, and fair between sources. A client is unknown until its connection is taken over, ends, or its request calls leaveWaitingRoom.
func (s *Server) httpServer(name string, handler http.Handler) *http.Server {
	unknown := waiting.New(maxHandshakes)
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: handshakeTimeout, IdleTimeout: handshakeTimeout, MaxHeaderBytes: maxHeaderBytes,
		// An empty map keeps HTTP/2 off: these connections are taken over.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, waitingRoom{}, func() { unknown.Leave(c) })
		},
		ErrorLog: slog.NewLogLogger(s.Log.With("port", name).Handler(), slog.LevelDebug),
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				if evicted := unknown.Enter(c); evicted != nil {
					_ = evicted.Close()
				}
			case http.StateHijacked, http.StateClosed:
				unknown.Leave(c)
			}
		},
	}
	server.SetKeepAlivesEnabled(false)
	return server
}

// waitingRoom is the key of a request's context for how its connection leaves those whose client is unknown.
type waitingRoom struct{}

func leaveWaitingRoom(ctx context.Context) {
	if leave, ok := ctx.Value(waitingRoom{}).(func()); ok {
		leave()
	}
}

// connect is a CONNECT request of kube-apiserver.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is served here", http.StatusMethodNotAllowed)
		return
	}
	to, err := parseTarget(r.URL.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case s.tunnels <- struct{}{}:
		defer func() { <-s.tunnels }()
	default:
		http.Error(w, fmt.Sprintf("%d tunnels are open, which is the limit (--max-tunnels)", cap(s.tunnels)), http.StatusServiceUnavailable)
		return
	}
	s.open.Add(1)
	defer s.open.Done()
	leaveWaitingRoom(r.Context()) // its certificate was verified, and how many wait for an agent is bounded by tunnels
	started := s.Now()
	t, err := s.agents.dial(r.Context(), to)
	if err != nil {
		// Nobody else bounds how long what follows the request is waited for.
		_ = http.NewResponseController(w).SetReadDeadline(s.Now().Add(handshakeTimeout))
		s.Log.Info("no tunnel", "target", to.String(), "reason", err.Error(), "took", s.Now().Sub(started).Round(time.Millisecond))
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer t.Close()
	conn, buffered, err := takeOver(w)
	if err != nil {
		s.Log.Error("taking over a connection", "error", err)
		return
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	join(conn, buffered, t, cmp.Or(s.HalfClosed, HalfClosed))
}

// join copies both ways until both have ended, or one has failed. When the client has sent everything the target is told; when
// the target has, the client can only be told by closing, as TLS connections of kube-apiserver have no other end. A target that
// does nothing more once the client has gone is not waited for: users of the hosted cluster say what it does, and tunnels are counted.
func join(client net.Conn, fromClient *bufio.Reader, t *tunnel, halfClosed time.Duration) {
	lull, over, done := &Lull{}, make(chan struct{}), make(chan struct{})
	defer close(over)
	go lull.Watch(client, halfClosed, over, func() {
		_ = t.Close()
		_ = client.Close()
	})
	moved := func() error { lull.Moved(); return nil }
	go func() {
		defer close(done)
		if err := copyAll(t, fromClient, moved); err != nil {
			_ = t.Close()
			return
		}
		_ = t.CloseWrite()
		lull.Ended()
	}()
	_ = copyAll(client, t, moved)
	_ = client.Close()
	_ = t.Close()
	<-done
}

// takeOver gives the connection of a request, without deadlines.
func takeOver(w http.ResponseWriter) (net.Conn, *bufio.Reader, error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("taking over the connection: %w", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("clearing the deadline: %w", err)
	}
	return conn, rw.Reader, nil
}

// join is an agent's request to join.
func (s *Server) join(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Path != joinPath || r.Header.Get("Upgrade") != joinProtocol {
		http.Error(w, "this port is for agents", http.StatusNotFound)
		return
	}
	if !s.ready.Load() {
		http.Error(w, "this server is about to end", http.StatusServiceUnavailable)
		return
	}
	id := r.Header.Get(agentIDHeader)
	if id == "" || len(id) > maxIDLength || printable(id, maxIDLength) != id {
		http.Error(w, agentIDHeader+" is missing or malformed", http.StatusBadRequest)
		return
	}
	ids, err := ParseIdentifiers(r.Header.Get(identifiersHeader))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// Before it is told that it has joined: an agent that is cut off after that believes itself connected, and tries again at once.
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && !s.agents.takes(waiting.SourceAt(from.Addr().Unmap().WithZone(""))) {
		http.Error(w, errTooMany.Error(), http.StatusServiceUnavailable)
		return
	}
	conn, buffered, err := takeOver(w)
	if err != nil {
		s.Log.Error("taking over an agent's connection", "error", err)
		return
	}
	if buffered.Buffered() > 0 { // an agent has nothing to say before our answer
		_ = conn.Close()
		return
	}
	s.adopt(conn, id, ids)
}

func (s *Server) adopt(conn net.Conn, id string, ids Identifiers) {
	answer := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + joinProtocol + "\r\n" +
		serverIDHeader + ": " + s.ID + "\r\n" + serverCountHeader + ": " + strconv.Itoa(s.Count) + "\r\n\r\n"
	_ = conn.SetWriteDeadline(s.Now().Add(handshakeTimeout))
	if _, err := conn.Write([]byte(answer)); err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetWriteDeadline(time.Time{})
	session := &session{id: id, ids: ids, source: waiting.Source(conn), address: waiting.Address(conn).String()}
	gone := make(chan struct{})
	watched := &notifyClose{Conn: plain{conn}, gone: func() { close(gone) }}
	session.closed = func() { _ = watched.Close() }
	h2, err := s.transport.NewClientConn(watched)
	if err != nil {
		_ = watched.Close()
		return
	}
	session.conn = h2
	if evicted := s.agents.add(session); evicted != nil {
		s.Log.Info("too many agents: the source with most of them gives one up", "agent", evicted.id, "address", evicted.address)
		evicted.closed()
		if evicted == session {
			return
		}
	}
	s.Log.Info("agent joined", "agent", id, "address", conn.RemoteAddr().String(), "agents", s.agents.count())
	go func() {
		<-gone
		s.agents.remove(session)
		s.Log.Info("agent left", "agent", id, "agents", s.agents.count())
	}()
}

// plain hides that a connection is TLS: HTTP/2 would want its own name negotiated there.
type plain struct{ net.Conn }
