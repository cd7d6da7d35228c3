// Package pullsecret keeps the pull secret of a node's kubelet as the hosted cluster's administrator wants it.
//
//	pull secrets, mounted ──▶ decide (pure) ──▶ file of the kubelet, restart of the kubelet; the old file when that fails
package pullsecret

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/sleep"
)

// Command is `hcp-sidecar sync-global-pullsecret`.
func Command() *cobra.Command {
	s := syncer{
		original: "/etc/original-pull-secret/.dockerconfigjson", global: "/etc/global-pull-secret/.dockerconfigjson", kubelet: "/var/lib/kubelet/config.json",
		restart: restartKubelet, pause: sleep.For,
	}
	interval := 30 * time.Second
	cmd := &cobra.Command{
		Use:   "sync-global-pullsecret",
		Short: "Keep the pull secret of this node's kubelet as the hosted cluster has it",
		Example: `  # in a pod of the DaemonSet global-pull-secret-syncer
  hcp-sidecar sync-global-pullsecret`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.log = cmd.OutOrStdout()
			return s.run(cmd.Context(), interval)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.original, "original-pull-secret-file", s.original, "pull secret of the control plane")
	f.StringVar(&s.global, "global-pull-secret-file", s.global, "that and the user's, merged; without the file the control plane's holds")
	f.StringVar(&s.kubelet, "kubelet-config-file", s.kubelet, "file that the kubelet reads its pull secret from")
	f.DurationVar(&interval, "check-interval", interval, "time between two looks")
	return cmd
}

// run looks again and again until ctx ends. What fails is told, and tried at the next look.
func (s syncer) run(ctx context.Context, interval time.Duration) error {
	if interval <= 0 {
		return fmt.Errorf("--check-interval must be more than 0, not %s", interval)
	}
	for {
		if err := s.sync(ctx); err != nil && ctx.Err() == nil {
			s.say("%v", err)
		}
		if s.pause(ctx, interval) != nil {
			return nil //nolint:nilerr // because only the end of ctx ends it
		}
	}
}

func (s syncer) say(format string, args ...any) {
	if s.log != nil {
		fmt.Fprintf(s.log, format+"\n", args...)
	}
}
