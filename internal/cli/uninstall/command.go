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

Without --yes, it only lists what it would remove, what it would keep, and what blocks it.
It refuses to run while there are hosted clusters or packages, because nothing would manage them any more: destroy them first, or use
--destroy-hosted-clusters and --delete-packages. You can interrupt it and run it again at any time.`,
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
	fs.BoolVar(&o.Yes, "yes", o.Yes, "Delete; without this flag, nothing is deleted")
	fs.BoolVar(&o.DestroyClusters, "destroy-hosted-clusters", o.DestroyClusters, "Destroy all hosted clusters and their NodePools first, with everything in them")
	fs.BoolVar(&o.DeletePackages, "delete-packages", o.DeletePackages, "Delete all packages first, with everything that they installed")
	fs.BoolVar(&o.KeepCRDs, "keep-crds", o.KeepCRDs, "Keep the CustomResourceDefinitions, and with them the objects of their kinds")
	fs.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long it may take in all; 0 means no limit")
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	return cmd
}
