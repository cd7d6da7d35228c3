// Package tlsserver serves HTTPS for small programs, with files of certificates that may be replaced while they run.
package tlsserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// How long one who asks may take, and one who is served last.
const (
	readTimeout  = 10 * time.Second
	writeTimeout = 60 * time.Second
	idleTimeout  = 2 * time.Minute
	endTimeout   = 5 * time.Second
	maxHeader    = 32 << 10
)

// Server is an HTTPS server. Its files are read for each connection: they are small, and connections few.
type Server struct {
	Addr              string
	CertFile, KeyFile string
	// ClientCAFile has the authorities of client certificates, which are verified when they are given; empty: nobody is asked for one.
	ClientCAFile string
	Handler      http.Handler
}

// Run serves until ctx ends.
func (s Server) Run(ctx context.Context) error {
	if s.CertFile == "" || s.KeyFile == "" {
		return errors.New("--tls-cert-file and --tls-key-file must be given")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetConfigForClient: s.config}
	if _, err := s.config(nil); err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", s.Addr)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", s.Addr, err)
	}
	server := &http.Server{Handler: s.Handler, TLSConfig: config, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving on %s: %w", s.Addr, err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return server.Shutdown(last)
}

// config is made of the files as they are now.
func (s Server) config(*tls.ClientHelloInfo) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the serving certificate: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{cert}}
	if s.ClientCAFile == "" {
		return config, nil
	}
	if config.ClientCAs, err = Pool(s.ClientCAFile); err != nil {
		return nil, err
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	return config, nil
}

// Pool are the authorities of a file in PEM.
func Pool(file string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("file %s holds no certificate authority in PEM", file)
	}
	return pool, nil
}
