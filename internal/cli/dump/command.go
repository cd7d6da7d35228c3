package dump

import (
	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/refuse"
)

// Command is `hypershift dump` with the subcommand cluster.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "dump",
		Short:   "Collect diagnostics",
		Example: `  hypershift dump cluster --name demo --artifact-dir demo-dump`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(clusterCommand())
	return cmd
}

func clusterCommand() *cobra.Command {
	o := NewOptions()
	var refused refuse.Flags
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Collect objects, events and logs of a hosted cluster",
		Long: `Collect objects, events and logs of a hosted cluster in a directory and in ` + archiveName + `.

Data of Secrets is never written, and keys, tokens and passwords are removed from everything else as far as they can be
recognized. Look through the files before you pass them on.`,
		Example: `  hypershift dump cluster --name demo --artifact-dir demo-dump
  hypershift dump cluster --name demo --artifact-dir demo-dump --dump-guest-cluster`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := refused.Check(cmd.Flags()); err != nil {
				return err
			}
			return Cluster(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Name, "name", o.Name, "Name of the hosted cluster (required)")
	fs.StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "Namespace of the HostedCluster")
	fs.StringVar(&o.ArtifactDir, "artifact-dir", o.ArtifactDir, "Directory for the files; it is created when it doesn't exist (required)")
	fs.BoolVar(&o.Guest, "dump-guest-cluster", o.Guest, "Also collect nodes, Pods, events and the like of the hosted cluster itself")
	refused.Switches(fs, "the hosted cluster is read through its published kubeconfig; leave the flag out", "dump-guest-cluster-through-kube-service")
	fs.BoolVar(&o.Archive, "archive-dump", o.Archive, "Also write "+archiveName)
	fs.StringVar(&o.OperatorNamespace, "operator-namespace", o.OperatorNamespace, "Namespace of the management cluster's operator")
	fs.StringVar(&o.AgentNamespace, "agent-namespace", o.AgentNamespace, "Namespace of the agents of a cluster on platform Agent, which is also collected")
	fs.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long the collection may take; 0 means no limit")
	o.Connect.AddFlags(fs)
	connect.CompleteHostedClusters(cmd, &o.Connect, "name", &o.Namespace)
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	connect.CompleteNamespaces(cmd, &o.Connect, "agent-namespace")
	_ = cmd.MarkFlagDirname("artifact-dir")
	return cmd
}
