// Command webapp is the small web application of the examples: it says who answers, in which version.
//
// It imports nothing outside the standard library and needs no rights.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// drain is how long it answers after it was told to end, so that nobody is sent to a door that just closed.
	drain = 5 * time.Second
	// slowest is how long a request may take altogether.
	slowest   = 10 * time.Second
	maxHeader = 16 << 10
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, ":8080", os.Getenv("WEBAPP_VERSION")); err != nil {
		fmt.Fprintln(os.Stderr, "webapp:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, address, version string) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding out my name: %w", err)
	}
	server := &http.Server{Addr: address, Handler: handler(host, version), ReadTimeout: slowest, WriteTimeout: slowest, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	fmt.Printf("webapp %s on %s listens at %s\n", version, host, address)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(drain)
	defer timer.Stop()
	<-timer.C
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), slowest)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func handler(host, version string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "Hello from %s, version %s\n", host, version)
		fmt.Printf("%s %s\n", r.Method, r.URL.Path)
	})
	return mux
}
