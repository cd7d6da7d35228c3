package main

import (
	"testing"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/support/supporttest"
)

func TestFlagsAreInTheTable(t *testing.T) {
	root := &cobra.Command{Use: "hcp-operators"}
	for _, r := range roles {
		root.AddCommand(r.command())
	}
	supporttest.Flags(t, "hcp-operators", root)
}
