package kubectlpackage

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/version"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and how it was built",
		Example: "  kubectl package version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "pko\t%s\n", version.This())
			if info, ok := debug.ReadBuildInfo(); ok {
				fmt.Fprint(cmd.OutOrStdout(), info.String())
			}
			return nil
		},
	}
}
