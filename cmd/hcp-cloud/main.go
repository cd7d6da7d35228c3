// Command hcp-cloud holds what speaks to clouds for the operators, so that these need no library of a cloud. The operators run it beside themselves where a
// platform asks for it, and manifests call what they know by an operator's name:
//
//	control-plane-operator etcd-upload …
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/etcdbackup/upload"
	"hcp.internal/platform/internal/gomemlimit"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/platform/aws/cloud"
	azure "hcp.internal/platform/internal/platform/azure/cloud"
	"hcp.internal/platform/internal/version"
)

func main() {
	gomemlimit.Heed()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:     "hcp-cloud",
		Short:   "Call clouds on behalf of the operators of hosted control planes",
		Example: "  hcp-cloud control-plane --namespace clusters-demo\n  hcp-cloud version",
		Args:    cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var logs process.Logs
	logs.AddFlags(root.PersistentFlags())
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return logs.SetUp() }
	root.AddCommand(upload.Commands()...)
	root.AddCommand(cloud.ControlPlane(), cloud.Management(), azure.ControlPlane(), azure.Management(), &cobra.Command{
		Use: "version", Short: "Print which build this is", Example: "  hcp-cloud version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "hcp-cloud %s\n", version.This())
			return err
		},
	})
	return root
}
