package main

import (
	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/cli/backup"
	"hcp.internal/platform/internal/cli/certificates"
)

// getCommand is `hypershift get`.
func getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get", Short: "List what belongs to hosted clusters",
		Example: "  hypershift get certificates demo",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(backup.GetCommand(), certificates.GetCommand())
	return cmd
}
