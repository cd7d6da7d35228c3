package konnectivity

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"hcp.internal/platform/internal/sleep"
)

// AgentOptions are the settings of an Agent.
type AgentOptions struct {
	// ID tells this agent from others, in logs only.
	ID string
	// Host and Port are where servers are reached; several servers share the address.
	Host string
	Port int
	// Files are the agent's certificate and the authority of servers.
	Files    Files
	Protocol Protocol
	// Identifiers as ParseIdentifiers reads them.
	Identifiers string
	KeepAlive   time.Duration
	// SyncInterval and SyncIntervalCap are the shortest and longest pause between attempts to reach another server.
	SyncInterval, SyncIntervalCap time.Duration
	Log                           *slog.Logger
	Now                           func() time.Time
	// Allow decides on addresses that tunnels may lead to; nil: all but the agent's own machine and link.
	Allow func(network, address string) error
}

// Agent connects to servers and serves their tunnels.
type Agent struct {
	AgentOptions
	credentials *credentials

	mu      sync.Mutex
	servers map[string]bool // connected, by id; true: and not about to end
	want    int             // how many servers there are, as the last one said
	changed chan struct{}   // a server left
}

// NewAgent reads the certificates.
func NewAgent(o AgentOptions) (*Agent, error) {
	if _, err := ParseIdentifiers(o.Identifiers); err != nil {
		return nil, err
	}
	c, err := load(o.Files, o.Now)
	if err != nil {
		return nil, err
	}
	return &Agent{AgentOptions: o, credentials: c, servers: map[string]bool{}, want: 1, changed: make(chan struct{}, 1)}, nil
}

// Connected is how many servers the agent is connected to, of how many.
func (a *Agent) Connected() (have, want int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, stays := range a.servers {
		if stays {
			have++
		}
	}
	return have, a.want
}

// errDuplicate is the answer of a server that the agent is connected to already.
var errDuplicate = errors.New("connected to this server already")

// firstDuplicate is the pause after the address led to a server that is known: it is likely to lead to another next time, so
// the agent needn't wait long.
const firstDuplicate = 250 * time.Millisecond

// Run keeps a connection to every server until ctx ends.
func (a *Agent) Run(ctx context.Context) error {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	pause := time.Duration(0)
	for {
		wait := a.SyncIntervalCap // all servers are met: look again when one leaves, or now and then
		if have, want := a.Connected(); have < want {
			wait = pause
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.changed:
			// Servers are restarted one after the other; a little disorder keeps agents from coming all at once.
			if sleep.For(ctx, rand.N(time.Second)) != nil {
				return nil
			}
			pause = 0
		case <-time.After(wait):
		}
		if have, want := a.Connected(); have >= want {
			continue
		}
		serve, err := a.join(ctx)
		switch {
		case err == nil:
			pause = 0
			sessions.Go(func() { serve() })
		case errors.Is(err, errDuplicate):
			pause = next(pause, firstDuplicate, a.SyncIntervalCap)
		default:
			a.Log.Info("no connection to a server", "error", err.Error())
			pause = next(pause, a.SyncInterval, a.SyncIntervalCap)
		}
	}
}

// next doubles a pause, with jitter, between first and limit.
func next(pause, first, limit time.Duration) time.Duration {
	pause = min(max(2*pause, first), limit)
	return pause - rand.N(pause/4+1)
}

// join connects to whichever server answers. The function that it returns serves tunnels until the connection ends.
func (a *Agent) join(ctx context.Context) (func(), error) {
	dialCtx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	cfg, err := clientTLS(a.credentials, a.Protocol, a.Host)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
	dialer := &tls.Dialer{NetDialer: &net.Dialer{KeepAlive: a.KeepAlive}, Config: cfg}
	conn, err := dialer.DialContext(dialCtx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	_ = conn.SetDeadline(a.Now().Add(handshakeTimeout))
	id, count, reader, err := a.handshake(conn)
	if err == nil {
		err = a.enter(id, count)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	a.Log.Info("connected", "server", id, "address", conn.RemoteAddr().String(), "servers", count)
	return func() {
		a.serve(ctx, id, readFirst{plain{conn}, reader})
		_ = conn.Close()
		a.leave(id)
		if ctx.Err() == nil {
			a.Log.Info("disconnected", "server", id)
		}
	}, nil
}

// handshake asks to join.
func (a *Agent) handshake(conn net.Conn) (id string, count int, rest *bufio.Reader, err error) {
	request := "GET " + joinPath + " HTTP/1.1\r\nHost: " + net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) + "\r\n" +
		"Connection: Upgrade\r\nUpgrade: " + joinProtocol + "\r\n" +
		agentIDHeader + ": " + printable(a.ID, maxIDLength) + "\r\n" + identifiersHeader + ": " + a.Identifiers + "\r\n\r\n"
	if _, err := conn.Write([]byte(request)); err != nil {
		return "", 0, nil, fmt.Errorf("asking to join: %w", err)
	}
	// The limit is for the answer only; afterwards the reader goes on without it.
	limited := &io.LimitedReader{R: conn, N: maxHeaderBytes}
	reader := bufio.NewReader(limited)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		return "", 0, nil, fmt.Errorf("reading the answer to the request to join: %w", err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != joinProtocol {
		return "", 0, nil, fmt.Errorf("the server refuses: %s", printable(resp.Status, maxReasonLength))
	}
	id = resp.Header.Get(serverIDHeader)
	count, err = strconv.Atoi(resp.Header.Get(serverCountHeader))
	if err != nil || id == "" || len(id) > maxIDLength || printable(id, maxIDLength) != id {
		return "", 0, nil, errors.New("the server's answer lacks its identity")
	}
	limited.N = 1 << 62
	return id, min(max(count, 1), maxServers), reader, nil
}

// readFirst reads what the handshake has read ahead before the rest.
type readFirst struct {
	net.Conn
	reader *bufio.Reader
}

func (c readFirst) Read(p []byte) (int, error) { return c.reader.Read(p) }

func (a *Agent) enter(id string, count int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.want = count
	if _, known := a.servers[id]; known {
		return errDuplicate
	}
	a.servers[id] = true
	return nil
}

// retire takes a server for one less of those that there are, although it goes on until it ends: another has come in its place.
func (a *Agent) retire(id string) {
	a.mu.Lock()
	a.servers[id] = false
	a.mu.Unlock()
	a.lookAgain()
}

func (a *Agent) leave(id string) {
	a.mu.Lock()
	delete(a.servers, id)
	a.mu.Unlock()
	a.lookAgain()
}

func (a *Agent) lookAgain() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// serve answers CONNECT requests of a server until the connection ends. When ctx ends the server is told to ask others, and
// tunnels get a few seconds.
func (a *Agent) serve(ctx context.Context, id string, conn net.Conn) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete && r.URL.Path == joinPath {
			a.Log.Info("the server is about to end", "server", id)
			a.retire(id)
			return
		}
		a.connect(w, r)
	}
	h1 := &http.Server{Handler: http.HandlerFunc(handler), MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(a.Log.Handler(), slog.LevelDebug)}
	h2 := &http2.Server{
		MaxConcurrentStreams: maxStreams, MaxUploadBufferPerStream: streamWindow, MaxUploadBufferPerConnection: connectionWindow,
		ReadIdleTimeout: a.KeepAlive, PingTimeout: pingTimeout, WriteByteTimeout: writeTimeout,
	}
	if err := http2.ConfigureServer(h1, h2); err != nil {
		a.Log.Error("setting up HTTP/2", "error", err)
		return
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		h2.ServeConn(conn, &http2.ServeConnOpts{Context: context.WithoutCancel(ctx), BaseConfig: h1, Handler: h1.Handler})
	}()
	select {
	case <-served:
	case <-ctx.Done():
		_ = h1.Shutdown(context.WithoutCancel(ctx)) // says goodbye on the connection and doesn't wait
		select {
		case <-served:
		case <-time.After(drainTimeout):
			_ = conn.Close()
			<-served
		}
	}
}
