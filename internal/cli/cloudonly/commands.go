// Package cloudonly holds the commands of the published tool that work on a cloud's account. This version lacks them, so
// they only say what to do instead; that is better than a command that is unknown, and than one that pretends.
package cloudonly

import (
	"fmt"

	"github.com/spf13/cobra"
)

// command is a command that is not there.
type command struct{ path, instead string }

// Below the root, and below create.
var (
	roots = []command{
		{"fix", "repair the OIDC provider of the account with the cloud's tools"},
	}
	creates = []command{
		{"operator-roles", "make the roles with the cloud's tools"},
	}
)

// Roots are commands of the tool itself.
func Roots() []*cobra.Command { return commands(roots) }

// Creates are commands below create.
func Creates() []*cobra.Command { return commands(creates) }

func commands(table []command) []*cobra.Command {
	var list []*cobra.Command
	for _, c := range table {
		list = append(list, &cobra.Command{
			Use:                c.path,
			Short:              "Not in this version",
			Long:               "This version lacks it: " + c.instead + ".",
			Example:            "  # What there is instead\n  hypershift create cluster --help",
			Hidden:             true,
			DisableFlagParsing: true, // whatever the flags are, the answer is the same
			RunE: func(cmd *cobra.Command, args []string) error {
				for _, arg := range args {
					if arg == "--help" || arg == "-h" {
						return cmd.Help()
					}
				}
				return fmt.Errorf("%s: this version lacks it; %s", cmd.CommandPath(), c.instead)
			},
		})
	}
	return list
}
