package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/version"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print which build this is", Example: "  hcp-sidecar version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "hcp-sidecar %s\n", version.This())
		},
	}
}
