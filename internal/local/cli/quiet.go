//go:build linux

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/local/quiet"
)

// errNotQuiet: the report has said why.
var errNotQuiet = errors.New("the local cluster is not quiet")

func quietCommand() *cobra.Command {
	f := &folders{}
	o := quiet.Options{Bounds: quiet.DefaultBounds()}
	output := ""
	cmd := &cobra.Command{
		Use:   "quiet",
		Short: "Show what works and writes while the clusters are idle",
		Long: `Watch the management cluster and all hosted clusters while nothing should happen, and report what does: objects that are written, with
the writers and fields; the requests of each client; the CPU time of each program.

The command fails if something is written, or if clients or processes are busier than in an idle cluster. Don't use the clusters
meanwhile: your own requests are counted, too.`,
		Example: `  hypershift local quiet
  hypershift local quiet --for 5m -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.StateDir, err = f.stateDir(); err != nil {
				return err
			}
			if o.Length < time.Second || o.Settle < 0 {
				return fmt.Errorf("--for is %s and --settle is %s: --for must be a second at least, --settle must not be negative", o.Length, o.Settle)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			o.Say = cmd.ErrOrStderr()
			report, err := quiet.Observe(ctx, o)
			if err != nil {
				return err
			}
			if output == "" {
				report.Print(cmd.OutOrStdout())
			} else if err := printAs(cmd.OutOrStdout(), output, report); err != nil {
				return err
			}
			if len(report.Problems) > 0 {
				return errNotQuiet
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&o.Length, "for", time.Minute, "how long to watch")
	cmd.Flags().DurationVar(&o.Settle, "settle", 3*time.Minute, "how long to wait first until nothing is written any more")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml; empty: tables")
	return cmd
}
