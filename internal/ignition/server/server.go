package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Time limits of a connection. A request is a line and a few headers, an answer some hundred kilobytes.
const (
	readTimeout  = 5 * time.Second
	writeTimeout = 10 * time.Second
	idleTimeout  = 10 * time.Second
	// shutdownTimeout lets answers that are on their way arrive.
	shutdownTimeout = 5 * time.Second
	maxHeaderBytes  = 16 << 10
)

// Server serves a handler over HTTPS. It implements manager.Runnable, and manager.LeaderElectionRunnable: it needs none.
type Server struct {
	Handler http.Handler
	// Listener is closed by Start.
	Listener net.Listener
	// Certificate is asked for each connection, so that a renewed one is taken without a restart.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Start serves until ctx is done.
func (s *Server) Start(ctx context.Context) error {
	srv := &http.Server{
		Handler:           s.Handler,
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		// No HTTP/2: one connection must not carry many requests at a time.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		TLSConfig:    &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: s.Certificate},
		// Strangers decide what it would say: mostly that a handshake failed.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		done <- srv.Shutdown(grace)
	}()
	if err := srv.ServeTLS(newFairListener(s.Listener, maxConnections), "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving ignition: %w", err)
	}
	return <-done
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Server) NeedLeaderElection() bool { return false }
