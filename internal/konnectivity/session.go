package konnectivity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// session is the server's end of an agent's connection.
type session struct {
	id     string
	ids    Identifiers
	source netip.Addr // see waiting.Source
	// address is that of the other end. A claim to be good for it is believed; for other hosts it can't be checked.
	address string
	conn    *http2.ClientConn
	closed  func() // ends the connection

	// suspect is set while the agent has not answered lately; it is then asked last.
	suspect atomic.Bool
}

// newTransport makes HTTP/2 connections with our limits.
func newTransport(keepAlive time.Duration) (*http2.Transport, error) {
	t1 := &http.Transport{HTTP2: &http.HTTP2Config{
		MaxReceiveBufferPerStream:     streamWindow,
		MaxReceiveBufferPerConnection: connectionWindow,
		SendPingTimeout:               keepAlive,
		PingTimeout:                   pingTimeout,
		WriteByteTimeout:              writeTimeout,
	}}
	t, err := http2.ConfigureTransports(t1)
	if err != nil {
		return nil, fmt.Errorf("setting up HTTP/2: %w", err)
	}
	t.DisableCompression = true
	t.MaxHeaderListSize = maxHeaderBytes
	t.ReadIdleTimeout, t.PingTimeout, t.WriteByteTimeout = keepAlive, pingTimeout, writeTimeout
	return t, nil
}

// notifyClose tells when the HTTP/2 connection gives the connection up, for whatever reason.
type notifyClose struct {
	net.Conn
	once sync.Once
	gone func()
}

func (c *notifyClose) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.gone)
	return err
}

// dialError is why an agent could not connect to a target.
type dialError struct {
	status int    // of the agent's answer; 0: no answer
	reason string // in the agent's words, bounded
}

func (e *dialError) Error() string {
	if e.status == 0 {
		return e.reason
	}
	return fmt.Sprintf("the agent answers %d: %s", e.status, e.reason)
}

// agentFailed reports whether the agent rather than the target is to blame, so that another agent may do better.
func (e *dialError) agentFailed() bool {
	return e.status == 0 || e.status == http.StatusServiceUnavailable
}

// tunnel is a connection to a target through an agent. Reading is from the target; what is written goes there. CloseWrite
// tells the target that nothing follows.
type tunnel struct {
	read   io.ReadCloser
	write  *io.PipeWriter
	cancel context.CancelFunc
}

func (t *tunnel) Read(p []byte) (int, error)  { return t.read.Read(p) }
func (t *tunnel) Write(p []byte) (int, error) { return t.write.Write(p) }
func (t *tunnel) CloseWrite() error           { return t.write.Close() }

// Close ends the tunnel in both directions.
func (t *tunnel) Close() error {
	_ = t.write.CloseWithError(errClosed)
	t.cancel()
	return t.read.Close()
}

var errClosed = errors.New("the tunnel is closed")

// open asks the agent for a connection. The tunnel lives until it is closed or the agent's connection ends; ctx bounds only
// the wait for the answer.
func (s *session) open(ctx context.Context, to target) (*tunnel, *dialError) {
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	reader, writer := io.Pipe()
	req := (&http.Request{
		Method: http.MethodConnect, URL: &url.URL{Scheme: "https", Host: to.String()}, Host: to.String(),
		Header: http.Header{}, Body: reader, ContentLength: -1,
	}).WithContext(streamCtx)
	resp, err := s.conn.RoundTrip(req)
	if !stop() && err == nil { // the time was up as the answer came
		_ = resp.Body.Close()
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		_ = writer.CloseWithError(errClosed)
		if ctx.Err() != nil {
			return nil, &dialError{reason: "no answer from the agent in time"}
		}
		return nil, &dialError{reason: "the agent's connection broke"}
	}
	if resp.StatusCode != http.StatusOK {
		reason := printable(resp.Header.Get(reasonHeader), maxReasonLength)
		_ = resp.Body.Close()
		cancel()
		_ = writer.CloseWithError(errClosed)
		return nil, &dialError{status: resp.StatusCode, reason: reason}
	}
	return &tunnel{read: resp.Body, write: writer, cancel: cancel}, nil
}

// farewell tells the agent that this server is about to end. One of before doesn't know the request and refuses it, which changes nothing.
func (s *session) farewell(ctx context.Context) {
	req := (&http.Request{Method: http.MethodDelete, URL: &url.URL{Scheme: "https", Host: "agent", Path: joinPath}, Host: "agent", Header: http.Header{}}).WithContext(ctx)
	if resp, err := s.conn.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
	}
}

// check ends the session when the agent doesn't answer a ping.
func (s *session) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := s.conn.Ping(ctx); err != nil {
		s.closed()
		return
	}
	s.suspect.Store(false)
}

// printable cuts a text of the other side to what may stand in a log line.
func printable(text string, limit int) string {
	out := make([]byte, 0, min(len(text), limit))
	for i := 0; i < len(text) && len(out) < limit; i++ {
		if c := text[i]; c >= ' ' && c <= '~' {
			out = append(out, c)
		}
	}
	return string(out)
}
