// Command webapp is the small web application of the examples: it says who answers, in which version.
//
// "webapp get URL" asks once and prints the answer, so that somebody can try a Service from inside of a pod: the image holds
// nothing else. "webapp poll URL" asks ten times a second, and counts what fails. "webapp hook CERT KEY" is a webhook and an
// aggregated API for the cluster that it runs in. It imports nothing outside the standard library and needs no rights.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	maxAnswer = 1 << 20
	// pollEvery and pollTimeout make of poll a client that is in no hurry and doesn't try again.
	pollEvery   = 100 * time.Millisecond
	pollTimeout = 2 * time.Second
	// tellEvery is how many requests one line of poll's output is about.
	tellEvery = 100
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "webapp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		return serve(ctx, ":8080", os.Getenv("WEBAPP_VERSION"))
	case len(args) == 2 && args[0] == "get":
		return get(ctx, args[1], os.Stdout)
	case len(args) == 2 && args[0] == "poll":
		return poll(ctx, args[1], os.Stdout)
	case len(args) == 3 && args[0] == "hook":
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("finding out my name: %w", err)
		}
		return hook(ctx, args[1], args[2], host)
	}
	return errors.New("usage: webapp, webapp get URL, webapp poll URL, or webapp hook CERT KEY")
}

// get writes the answer of url to out.
func get(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, slowest)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// A connection of its own, so that a Service chooses anew whom to send it to.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: status %d", url, resp.StatusCode)
	}
	_, err = io.Copy(out, io.LimitReader(resp.Body, maxAnswer))
	return err
}

// poll asks url until ctx ends. It prints each failure with its time, and figures now and then and at the end:
// "1200 asked, 0 failed".
func poll(ctx context.Context, url string, out io.Writer) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	asked, failed := 0, 0
	for {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		if ctx.Err() != nil { // also when both are there
			_, err := fmt.Fprintf(out, "%d asked, %d failed\n", asked, failed)
			return err
		}
		asked++
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollTimeout)
		if err := get(once, url, io.Discard); err != nil {
			failed++
			fmt.Fprintf(out, "%s failed: %v\n", time.Now().Format(time.TimeOnly), err)
		}
		cancel()
		if asked%tellEvery == 0 {
			fmt.Fprintf(out, "%d asked, %d failed\n", asked, failed)
		}
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
	return untilTold(ctx, server, ended)
}

// untilTold lets a server go on until ctx ends and a while longer.
func untilTold(ctx context.Context, server *http.Server, ended <-chan error) error {
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
