package destroy

import (
	"fmt"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/cli/connect"
)

// Command is `hypershift destroy` with the subcommand cluster.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "destroy",
		Short: "Destroy hosted clusters",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	clusters := &cobra.Command{
		Use:   "cluster",
		Short: "Destroy a hosted cluster and wait until nothing of it is left",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	clusters.AddCommand(clusterCommand("none", "whose workers you brought yourself"), clusterCommand("local", "of the local management cluster"))
	cmd.AddCommand(clusters)
	return cmd
}

func clusterCommand(platform, which string) *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:   platform,
		Short: "Destroy a hosted cluster " + which,
		Long: fmt.Sprintf(`Destroy a hosted cluster %s, with everything in it, and wait until nothing of it is left.

It prints what it waits for. It can be interrupted and run again at any time.`, which),
		Example: fmt.Sprintf(`  hypershift destroy cluster %[1]s --name demo
  # The operator is gone, or stuck: leave behind what it holds
  hypershift destroy cluster %[1]s --name demo --cluster-grace-period 1m --force`, platform),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return Cluster(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Name, "name", o.Name, "Name of the hosted cluster (required)")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the HostedCluster")
	fs.StringVar(&o.InfraID, "infra-id", o.InfraID, "Identifier of what the cluster owns, to clean up when the HostedCluster is gone already")
	fs.DurationVar(&o.GracePeriod, "cluster-grace-period", o.GracePeriod, "How long the operator may take")
	fs.BoolVar(&o.CloudResources, "destroy-cloud-resources", o.CloudResources, "Also delete what the hosted cluster made in a cloud: load balancers, volumes")
	fs.BoolVar(&o.Force, "force", o.Force, "Take finalizers off when the grace period is over; what they guard may be left behind")
	o.Connect.AddFlags(fs)
	connect.CompleteHostedClusters(cmd, &o.Connect, "name", &o.Namespace)
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	return cmd
}
