package kasbootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/sidecar/kubeapi"
)

// Command is `hcp-sidecar kas-bootstrap`.
func Command() *cobra.Command {
	var (
		dir, kubeconfig string
		wait            bool
		timeout         = 3 * time.Minute
	)
	cmd := &cobra.Command{
		Use:   "kas-bootstrap",
		Short: "Apply the first objects of a hosted cluster from a folder of manifests",
		Long: `Apply every *.yaml of a folder to the API server by server-side apply, as soon as it answers.

With --wait the process then stays until it is told to stop, which is what an ordinary container of a
Deployment's pod must do; without it, it exits 0.`,
		Example: `  hcp-sidecar kas-bootstrap --resources-path=/work --kubeconfig=/var/secrets/localhost-kubeconfig/kubeconfig --wait`,
		Args:    cobra.NoArgs,

		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kubeconfig == "" {
				kubeconfig = os.Getenv("KUBECONFIG")
			}
			if dir == "" || kubeconfig == "" {
				return errors.New("--resources-path and --kubeconfig (or the environment variable KUBECONFIG) must be given")
			}
			objects, err := Load(dir)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			b := Bootstrap{Log: cmd.OutOrStdout(), Connect: func() (*kubeapi.Client, error) { return kubeapi.FromKubeconfig(kubeconfig) }}
			if err := b.Run(ctx, objects); err != nil {
				return err
			}
			if !wait {
				return nil
			}
			fmt.Fprintln(cmd.OutOrStdout(), "done; waiting to be stopped")
			debug.FreeOSMemory()
			<-cmd.Context().Done()
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "resources-path", "", "folder with the manifests (*.yaml)")
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of a user who may create them; default: $KUBECONFIG")
	f.BoolVar(&wait, "wait", false, "stay after success until told to stop")
	f.DurationVar(&timeout, "timeout", timeout, "give up after this long")
	return cmd
}
