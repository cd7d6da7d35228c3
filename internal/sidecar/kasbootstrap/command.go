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
		admin           = os.Getenv("KUBECONFIG_ADMIN")
		wait            bool
		timeout         = 3 * time.Minute
	)
	cmd := &cobra.Command{
		Use:   "kas-bootstrap",
		Short: "Apply the first objects of a hosted cluster from a folder of manifests",
		Long: `Apply every *.yaml of a folder to the API server by server-side apply, as soon as it answers.

With --admin-kubeconfig, what lets the user of --kubeconfig in is applied first, by that of the administrator, and the status of a FeatureGate, too;
and the process stays, as with --wait: so it is in the pods of OpenShift payloads.

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
			by := func(path string) Bootstrap {
				return Bootstrap{Log: cmd.OutOrStdout(), Connect: func() (*kubeapi.Client, error) { return kubeapi.FromKubeconfig(path) }}
			}
			if admin != "" {
				if err := by(admin).Run(ctx, ofUser(objects)); err != nil {
					return err
				}
			}
			if err := by(kubeconfig).Run(ctx, objects); err != nil {
				return err
			}
			if admin != "" {
				if err := by(kubeconfig).Run(ctx, statuses(objects)); err != nil {
					return err
				}
			}
			if !wait && admin == "" {
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
	f.StringVar(&admin, "admin-kubeconfig", admin, "kubeconfig of the administrator, who lets the user of --kubeconfig in; default: $KUBECONFIG_ADMIN")
	f.BoolVar(&wait, "wait", false, "stay after success until told to stop")
	f.DurationVar(&timeout, "timeout", timeout, "give up after this long")
	return cmd
}
