package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/cli/child"
	"hcp.internal/platform/internal/cli/connect"
)

// ConnectCommand is `hypershift connect`.
func ConnectCommand() *cobra.Command {
	o := Options{Namespace: connect.DefaultNamespace}
	forward, ttl := false, time.Duration(0)
	cmd := &cobra.Command{
		Use:   "connect NAME [-- COMMAND [ARGUMENTS]]",
		Short: "Run a command, or a shell, that talks to a hosted cluster",
		Long: `Run a command with the kubeconfig of a hosted cluster in $KUBECONFIG, and exit with its exit code. Without a command, it runs your shell. The kubeconfig is in a
file that only you can read, and that is removed when the command ends. SIGTERM and SIGHUP are passed on to the command.

If you can't reach the hosted cluster's API server from here, use --port-forward.`,
		Example: `  hypershift connect demo -- kubectl get nodes
  hypershift connect demo -n clusters --port-forward -- kubectl get pods -A
  hypershift connect demo --ttl 30m`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case len(args) == 0 || dash == 0:
				return errors.New("name a hosted cluster: hypershift connect NAME -- COMMAND")
			case dash < 0 && len(args) > 1 || dash > 1:
				return fmt.Errorf("write -- before the command: hypershift connect %s -- COMMAND", args[0])
			}
			return nil
		},
		Annotations: map[string]string{connect.QuietNamespace: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if err := CheckLease(ttl); err != nil {
				return err
			}
			ctx, keep, stop := untilKept(cmd.Context())
			defer stop()
			c, err := o.Connect.Client()
			if err != nil {
				return err
			}
			raw, err := Kubeconfig(ctx, c, o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if forward {
				if _, raw, err = o.forward(ctx, c, raw, cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			if ttl != 0 {
				if raw, _, err = Leased(ctx, raw, ttl); err != nil {
					return err
				}
			}
			keep() // from here on, an interrupt is for the command, which still needs the forwarding
			return with(cmd, raw, args[1:])
		},
	}
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "Namespace of the HostedCluster")
	cmd.Flags().BoolVar(&forward, "port-forward", forward, "Connect to the API server through the management cluster")
	cmd.Flags().DurationVar(&ttl, "ttl", ttl, "Lifetime of the credential, at least 10m; 0 means the published one, which lasts for months")
	o.Connect.AddFlags(cmd.Flags())
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	cmd.ValidArgsFunction = connect.CompleteArgument(&o.Connect, hostedClusters, &o.Namespace, true)
	return cmd
}

// with runs a command with a kubeconfig.
func with(cmd *cobra.Command, raw []byte, command []string) error {
	if len(command) == 0 {
		command = []string{shell()}
	}
	return child.Run(cmd, child.Command{Args: command, Kubeconfig: raw})
}

// untilKept is a context that ends with its parent until keep is called, and from then on only with stop.
func untilKept(parent context.Context) (ctx context.Context, keep func() bool, stop func()) {
	ctx, stop = context.WithCancel(context.WithoutCancel(parent))
	return ctx, context.AfterFunc(parent, stop), stop
}

// shell is the user's.
func shell() string {
	for _, name := range []string{"SHELL", "COMSPEC"} {
		if s := os.Getenv(name); s != "" {
			return s
		}
	}
	return "sh"
}
