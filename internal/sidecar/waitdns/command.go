// Package waitdns waits until host names resolve: the start gate of containers whose program gives up on a missing name.
package waitdns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"
)

// interval between two rounds of lookups. Headless services publish a pod's name within a second or so; a fifth of that
// keeps the wait from adding to a start.
const interval = 200 * time.Millisecond

// lookupTimeout bounds one lookup, so that one lost UDP packet doesn't eat the whole wait.
const lookupTimeout = 2 * time.Second

// resolver is what waiting needs from DNS; *net.Resolver is one.
type resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
}

// Command is `hcp-sidecar wait-dns`.
func Command() *cobra.Command {
	timeout := 5 * time.Minute
	cmd := &cobra.Command{
		Use:     "wait-dns NAME...",
		Aliases: []string{"resolve-dns"}, // what manifests made for the published operator call it
		Short:   "Wait until every name resolves, then exit 0",
		Example: `  # before kube-apiserver: etcd's service must have an address
  hcp-sidecar wait-dns etcd-client.clusters-demo.svc`,
		Args:          cobra.MinimumNArgs(1),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, names []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return wait(ctx, net.DefaultResolver, names, cmd.OutOrStdout())
		},
	}
	cmd.Flags().Bool("self-register", false, "accepted, so that manifests carry over: the management cluster's own controller gives the pod its name")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "give up after this long")
	return cmd
}

// wait returns nil once every name has resolved at least once, else an error that names the first one which doesn't.
func wait(ctx context.Context, dns resolver, names []string, out io.Writer) error {
	start := time.Now()
	for _, name := range names {
		addrs, err := lookup(ctx, dns, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s resolves to %v after %s\n", name, addrs, time.Since(start).Round(time.Millisecond))
	}
	return nil
}

var errNoAddress = errors.New("it has no address")

func lookup(ctx context.Context, dns resolver, name string) ([]string, error) {
	var last error
	for {
		try, cancel := context.WithTimeout(ctx, lookupTimeout)
		addrs, err := dns.LookupHost(try, name)
		cancel()
		if err == nil && len(addrs) > 0 {
			return addrs, nil
		}
		if err == nil {
			err = errNoAddress
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s to resolve: %w (last answer: %w)", name, ctx.Err(), last)
		case <-time.After(interval):
		}
	}
}
