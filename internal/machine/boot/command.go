package boot

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
)

// Command is hcp-sidecar machine-init.
func Command() *cobra.Command {
	var userData string
	cmd := &cobra.Command{
		Use:   "machine-init",
		Short: "Be the first process of a machine of platform Local",
		Long: `Be the first process of a machine of platform Local: apply the Ignition config that the user data names, once, and run its units.

SIGTERM powers off, SIGINT reboots.`,
		Example: "  hcp-sidecar machine-init --user-data /machine/user-data/value",
		Args:    cobra.NoArgs,
		// Its output is a console.
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return (&Init{Clock: clock.RealClock{}, UserData: userData, Getenv: os.Getenv}).Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&userData, "user-data", "/machine/user-data/value", "File with the user data")
	return cmd
}
