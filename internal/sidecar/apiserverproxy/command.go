package apiserverproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

const (
	// probeInterval is between two attempts to reach the API that nobody asked for; reached is for how long one that worked counts.
	probeInterval, reached = 10 * time.Second, 45 * time.Second
	// headerTimeout bounds a request for health.
	headerTimeout = 5 * time.Second
)

// options of the program.
type options struct {
	listen, health netip.AddrPort
	target, link   string
	drain          time.Duration
}

// Command is `kube-apiserver-node-proxy`.
func Command() *cobra.Command {
	o := options{}
	var listenText, healthText string
	cmd := &cobra.Command{
		Use:     "kube-apiserver-node-proxy",
		Short:   "Own the API's advertised address on a node and forward connections to the published API",
		Example: "  kube-apiserver-node-proxy --listen=172.20.0.1:6443 --target=api.example.com:6443",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.listen, err = netip.ParseAddrPort(listenText); err != nil {
				return fmt.Errorf("--listen %q is not ADDRESS:PORT", listenText)
			}
			if o.health, err = netip.ParseAddrPort(healthText); err != nil {
				return fmt.Errorf("--health %q is not ADDRESS:PORT", healthText)
			}
			return run(cmd.Context(), o, slog.New(slog.NewTextHandler(os.Stderr, nil)))
		},
	}
	f := cmd.Flags()
	f.StringVar(&listenText, "listen", "", "advertised address and port")
	f.StringVar(&o.target, "target", "", "host and port of the published API")
	f.StringVar(&o.link, "link", "lo", "link that gets the address; empty when something else puts it there")
	f.StringVar(&healthText, "health", "127.0.0.1:2042", "address and port of /healthz and /readyz, plain HTTP")
	f.DurationVar(&o.drain, "drain", 25*time.Second, "how long open connections may go on after the program was told to end")
	for _, name := range []string{"listen", "target"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // a misspelt flag above
		}
	}
	return cmd
}

func run(ctx context.Context, o options, log *slog.Logger) error {
	t, err := newTarget(o.target, o.listen)
	if err != nil {
		return err
	}
	keeper := &owner{link: o.link, address: o.listen.Addr(), log: log}
	if o.link != "" {
		_ = keeper.look() // it goes on trying, and listening needs no address
	}
	l, err := listen(ctx, o.listen)
	if err != nil {
		return err
	}
	health, err := listen(ctx, o.health)
	if err != nil {
		return err
	}
	var last atomic.Int64 // when the API was reached, as Unix time
	server := &http.Server{ReadHeaderTimeout: headerTimeout, Handler: checks(keeper.last, func() error {
		if since := time.Since(time.Unix(last.Load(), 0)); since > reached {
			return fmt.Errorf("%s could not be reached for the last %s", o.target, reached)
		}
		return nil
	})}
	log.Info("passing connections on", "listen", o.listen, "target", o.target)
	group, groupCtx := errgroup.WithContext(ctx)
	if o.link != "" {
		group.Go(func() error { keeper.run(groupCtx); return nil })
	}
	group.Go(func() error { return newProxy(t, log).serve(groupCtx, l, o.drain) })
	group.Go(func() error { probe(groupCtx, t, &last); return nil })
	group.Go(func() error {
		if err := server.Serve(health); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving health: %w", err)
		}
		return nil
	})
	group.Go(func() error { <-groupCtx.Done(); return server.Close() })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("passing connections on: %w", err)
	}
	return nil
}

// checks serve /healthz, which is about this program, and /readyz, which is about the API, too. An API that is away is no reason to
// start anew.
func checks(healthy, ready func() error) http.Handler {
	mux := http.NewServeMux()
	serve := func(path string, all ...func() error) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			for _, check := range all {
				if err := check(); err != nil {
					http.Error(w, err.Error(), http.StatusServiceUnavailable)
					return
				}
			}
			_, _ = w.Write([]byte("ok\n"))
		})
	}
	serve("/healthz", healthy)
	serve("/readyz", healthy, ready)
	return mux
}

// probe notes when the API was reached.
func probe(ctx context.Context, t *target, last *atomic.Int64) {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		if conn, err := t.connect(ctx); err == nil {
			_ = conn.Close()
			last.Store(time.Now().Unix())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
