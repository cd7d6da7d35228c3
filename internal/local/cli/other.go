//go:build !linux

package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// Command returns "local", which says that it can't be.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:   "local",
		Short: "Run a management cluster with a hosted cluster on this machine (Linux only)",
		Long: `Run a management cluster with a hosted cluster on this machine. It needs Linux: run it in a virtual machine or on a server, copy the
kubeconfig from there, and use all other commands here.`,
		Example:            "  hypershift local up",
		DisableFlagParsing: true, // whatever was asked for, the answer is the same
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (args[0] == "-h" || args[0] == "--help" || args[0] == "help") {
				return cmd.Help()
			}
			return fmt.Errorf("hypershift local runs on Linux only, and this is %s: run it in a Linux machine (Debian 12, 2 cores, 8 GiB), copy .local/kubeconfig from there, and use the other commands from here with --kubeconfig", runtime.GOOS)
		},
	}
}
