package capi

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/util/cert"
)

const (
	// headerTimeout is how long a client may take to say what it wants.
	headerTimeout = 30 * time.Second
	// idleTimeout is how long a connection may wait for the next request.
	idleTimeout = 3 * time.Minute
	// grace is what requests under way get at the end.
	grace = 2 * time.Second
)

// listen opens a port of the loopback, any free one for 0.
func listen(ctx context.Context, port int) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("--port %d: %w; choose another one, or 0 for any that is free", port, err)
	}
	return l, nil
}

// serve answers until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return fmt.Errorf("serving on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stopping: %w", err)
	}
	_ = server.Close() // watches
	return nil
}

// encrypted adds TLS to a listener. kubectl sends its password over nothing else. ca, in PEM, is what to trust.
func encrypted(l net.Listener) (_ net.Listener, ca []byte, err error) {
	ca, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(ca, key)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}), ca, nil
}

// newToken is a password for the time that a command runs.
func newToken() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

// guarded lets only those in who know the token: others on the same machine could use the credentials of the kubeconfig otherwise.
func guarded(token string, next http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}` + "\n"))
			return
		}
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})
}
