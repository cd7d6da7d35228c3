package destroy

import (
	"fmt"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/refuse"
)

// Command is `hypershift destroy` with the subcommands cluster and nodepool.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "destroy",
		Short: "Destroy hosted clusters and NodePools",
		Example: `  hypershift destroy cluster local --name demo
  hypershift destroy nodepool --name more`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	clusters := &cobra.Command{
		Use:     "cluster",
		Short:   "Destroy a hosted cluster and wait until nothing is left",
		Example: `  hypershift destroy cluster local --name demo`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, arg := range create.PlatformArgs() {
		clusters.AddCommand(clusterCommand(arg))
	}
	cmd.AddCommand(clusters, nodePoolCommand())
	return cmd
}

// special are platforms without infrastructure of their own, and how a cluster there is called.
var special = map[string]string{
	"none":  "whose workers you brought yourself",
	"local": "of the local management cluster",
	"agent": "whose workers come from the assisted installer's pool",
}

// noInfrastructure is what a person should know at the end of a command that doesn't remove what a cluster used in a cloud.
const noInfrastructure = `
This version removes nothing from a cloud's account but what the operators made: network, roles and DNS zones that you made for
the cluster are left.`

func clusterCommand(platform string) *cobra.Command {
	which, complete := special[platform]
	if !complete {
		which = "on " + platform
	}
	o := NewOptions()
	o.platform = platform
	var unneeded refuse.Unneeded
	var account *awsAccount
	if platform == "aws" {
		account = &awsAccount{}
	}
	cmd := &cobra.Command{
		Use:   platform,
		Short: "Destroy a hosted cluster " + which,
		Long: fmt.Sprintf(`Destroy a hosted cluster %s, with everything in it, and wait until nothing is left.

The command prints what it is waiting for. You can interrupt it and run it again at any time. It refuses (exit code 2) to destroy a cluster with annotation
hypershift.openshift.io/delete-protection=true until someone removes that annotation; --dry-run shows what it would delete.`, which),
		Example: fmt.Sprintf(`  hypershift destroy cluster %[1]s --name demo
  # What would go?
  hypershift destroy cluster %[1]s --name demo --dry-run
  # The operator is gone, or stuck: leave behind what it holds
  hypershift destroy cluster %[1]s --name demo --cluster-grace-period 1m --force`, platform),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, note := range unneeded.Notes(cmd.Flags()) {
				fmt.Fprintln(cmd.ErrOrStderr(), note)
			}
			if account != nil {
				return account.run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return Cluster(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	switch {
	case account != nil:
		cmd.Long += "\n" + `
Before it lets the HostedCluster go, it removes what the cluster had in the AWS account: network, DNS zones and, without --preserve-iam, roles. If the
HostedCluster is gone already, name what is left by --infra-id, --region, --base-domain and, if it had one, --base-domain-prefix. If another account owns the VPC, the command refuses to begin without that account's
credentials; --vpc-owner-aws-creds none leaves what is there.`
		account.addFlags(fs)
		unneeded.Values(fs, "azure-creds", "location", "resource-group-name", "dns-zone-rg-name")
		unneeded.Switches(fs, "preserve-resource-group")
	case !complete:
		cmd.Long += "\n" + noInfrastructure
		// The published tool removes network and roles with these; here there is nothing that they could change.
		unneeded.Values(fs, "region", "base-domain", "base-domain-prefix", "aws-creds", "sts-creds", "role-arn", "aws-infra-grace-period",
			"azure-creds", "location", "resource-group-name", "dns-zone-rg-name", "secret-creds")
		unneeded.Switches(fs, "preserve-iam", "preserve-resource-group")
	}
	fs.StringVar(&o.Name, "name", o.Name, "Name of the hosted cluster (required)")
	fs.StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "Namespace of the HostedCluster")
	fs.StringVar(&o.InfraID, "infra-id", o.InfraID, "Identifier of the cluster's resources, to clean up if the HostedCluster is gone already")
	fs.DurationVar(&o.GracePeriod, "cluster-grace-period", o.GracePeriod, "How long the operator may take")
	fs.BoolVar(&o.CloudResources, "destroy-cloud-resources", o.CloudResources, "Also delete what the hosted cluster created in a cloud: load balancers, volumes")
	fs.BoolVar(&o.Force, "force", o.Force, "Remove finalizers when the grace period is over; what they protect may be left behind")
	o.Connect.DryRun.AddFlag(cmd)
	o.Connect.AddFlags(fs)
	connect.CompleteHostedClusters(cmd, &o.Connect, "name", &o.Namespace)
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	return cmd
}
