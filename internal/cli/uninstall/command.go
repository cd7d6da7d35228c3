package uninstall

import (
	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/cli/connect"
)

// Command is `hypershift uninstall`.
func Command() *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the operators and their APIs from a management cluster",
		Long: `Remove the operators and their APIs from a management cluster.

Without --yes it only says what would go, what would stay, and what stands in the way.
It refuses while there are hosted clusters or packages, because nobody would look after them any more: destroy them first, or let it
do that with --destroy-hosted-clusters and --delete-packages. It can be interrupted and run again at any time.`,
		Example: `  # What would go, and what stands in the way?
  hypershift uninstall

  # Remove an installation that isn't used any more
  hypershift uninstall --yes

  # Destroy everything that runs, too
  hypershift uninstall --destroy-hosted-clusters --delete-packages --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	fs := cmd.Flags()
	o.Connect.AddFlags(fs)
	fs.StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "Namespace of the operator")
	fs.BoolVar(&o.Yes, "yes", o.Yes, "Do it; without this flag nothing is deleted")
	fs.BoolVar(&o.DestroyClusters, "destroy-hosted-clusters", o.DestroyClusters, "Destroy all hosted clusters and their NodePools first, with everything in them")
	fs.BoolVar(&o.DeletePackages, "delete-packages", o.DeletePackages, "Delete all packages first, with everything that they installed")
	fs.BoolVar(&o.KeepCRDs, "keep-crds", o.KeepCRDs, "Leave the CustomResourceDefinitions, and so the objects of their kinds")
	fs.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long it may take in all; 0 means no limit")
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	return cmd
}
