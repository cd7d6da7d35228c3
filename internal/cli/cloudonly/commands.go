// Package cloudonly holds the commands of the published tool that work on a cloud's account. This version logs in to no cloud, so
// they only say what to do instead; that is better than a command that is unknown, and than one that pretends.
package cloudonly

import (
	"fmt"

	"github.com/spf13/cobra"
)

// command is a command that is not there.
type command struct{ path, instead string }

const makeInfra = "make network, load balancers and DNS zones with the cloud's tools, and describe them to `hypershift create cluster PLATFORM` by its flags"

// Below the root, create and destroy.
var (
	roots = []command{
		{"console-logs", "read the machine's console with the cloud's tools"},
		{"fix", "repair the OIDC provider of the account with the cloud's tools"},
	}
	creates = []command{
		{"infra", makeInfra},
		{"iam", "make roles and the OIDC provider with the cloud's tools, and name them in the file of `hypershift create cluster aws --iam-json`"},
		{"operator-roles", "make the roles with the cloud's tools"},
		{"bastion", "make a machine in the cluster's network with the cloud's tools, and reach nodes from there"},
	}
	destroys = []command{
		{"infra", "remove what carries the tag kubernetes.io/cluster/{infra ID} with the cloud's tools"},
		{"iam", "remove the roles and the OIDC provider with the cloud's tools"},
		{"bastion", "remove the machine with the cloud's tools"},
	}
)

// Roots are commands of the tool itself.
func Roots() []*cobra.Command { return commands(roots) }

// Creates are commands below create.
func Creates() []*cobra.Command { return commands(creates) }

// Destroys are commands below destroy.
func Destroys() []*cobra.Command { return commands(destroys) }

func commands(table []command) []*cobra.Command {
	var list []*cobra.Command
	for _, c := range table {
		list = append(list, &cobra.Command{
			Use:                c.path,
			Short:              "Not in this version",
			Long:               "This version logs in to no cloud: " + c.instead + ".",
			Example:            "  # What there is instead\n  hypershift create cluster --help",
			Hidden:             true,
			DisableFlagParsing: true, // whatever the flags are, the answer is the same
			RunE: func(cmd *cobra.Command, args []string) error {
				for _, arg := range args {
					if arg == "--help" || arg == "-h" {
						return cmd.Help()
					}
				}
				return fmt.Errorf("%s: this version logs in to no cloud; %s", cmd.CommandPath(), c.instead)
			},
		})
	}
	return list
}
