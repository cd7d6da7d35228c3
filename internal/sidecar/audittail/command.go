package audittail

import (
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
)

// Command is `hcp-sidecar audit-tail`.
func Command() *cobra.Command {
	interval := 500 * time.Millisecond
	cmd := &cobra.Command{
		Use:     "audit-tail FILE",
		Short:   "Copy a rotated log to standard output until told to stop",
		Example: `  hcp-sidecar audit-tail /var/log/kube-apiserver/audit.log`,
		Args:    cobra.ExactArgs(1),

		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			debug.FreeOSMemory() // what starting up needed is not needed again
			return Tail{Path: args[0], Out: cmd.OutOrStdout(), Interval: interval}.Run(cmd.Context())
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", interval, "how often to look for new lines")
	return cmd
}
