// Package nodetrust has the kubelet of a node trust what the hosted cluster's ConfigMap node-trust says.
//
//	mounted bundles ──▶ check (the API server is verified by them) ──▶ mark, files of the kubelet, kubelet started anew, mark gone ──▶ ready
//
// Each file is replaced in one step. The mark is a file beside the kubelet's kubeconfig: whoever dies between the files and the new start finds it, and
// starts the kubelet anew. Nothing else of the node is written.
package nodetrust

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

// Command is `hcp-sidecar node-trust`.
func Command() *cobra.Command {
	k := keeper{proc: "/proc", verify: verify, restart: restartKubelet}
	health, interval := "127.0.0.1:2043", 10*time.Second
	cmd := &cobra.Command{
		Use:   "node-trust",
		Short: "Make this node's kubelet trust the hosted cluster's authorities, old and new",
		Example: `  # in a pod of the DaemonSet node-trust
  hcp-sidecar node-trust --hash=0123456789abcdef`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k.log = cmd.OutOrStdout()
			return run(cmd.Context(), k, health, interval)
		},
	}
	f := cmd.Flags()
	f.StringVar(&k.trust, "trust", "/etc/node-trust", "folder with root-ca.crt and kubelet-ca.crt, as the hosted cluster has them")
	f.StringVar(&k.hash, "hash", "", "hash of both; nothing is done while the folder holds others (required)")
	f.StringVar(&k.kubernetesDir, "kubernetes-dir", "/etc/kubernetes", "folder of the node with kubelet-ca.crt and the kubeconfig that it joined with")
	f.StringVar(&k.kubeletDir, "kubelet-dir", "/var/lib/kubelet", "folder of the node with the kubelet's kubeconfig")
	f.StringVar(&health, "health", health, "address and port of /readyz, plain HTTP")
	f.DurationVar(&interval, "check-interval", interval, "time between two looks")
	if err := cmd.MarkFlagRequired("hash"); err != nil {
		panic(err) // a misspelt flag above
	}
	return cmd
}

// headerTimeout bounds a request for health.
const headerTimeout = 5 * time.Second

// run looks again and again until ctx ends. What fails is told, and tried at the next look.
func run(ctx context.Context, k keeper, health string, interval time.Duration) error {
	if interval <= 0 {
		return fmt.Errorf("--check-interval must be more than 0, not %s", interval)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", health)
	if err != nil {
		return fmt.Errorf("listening on --health %s: %w", health, err)
	}
	var ready atomic.Bool
	server := &http.Server{ReadHeaderTimeout: headerTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "the kubelet does not trust yet what it is to trust", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok")
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer server.Close()
	last := ""
	for {
		err := k.keep(ctx)
		ready.Store(err == nil)
		if told := fmt.Sprint(err); told != last && ctx.Err() == nil { // once, not at each look
			last = told
			if err == nil {
				told = "the kubelet trusts what it is to trust: " + k.hash
			}
			k.say("%s", told)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return fmt.Errorf("serving health: %w", errors.Join(err))
		case <-time.After(interval):
		}
	}
}
