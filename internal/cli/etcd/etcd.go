// Package etcd is `hypershift etcd`: what a person decides about the etcd of a hosted cluster.
package etcd

import (
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/etcdrecovery"
)

// Command is `hypershift etcd`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "etcd", Short: "Recover the etcd of a hosted cluster", Example: "  hypershift etcd recover demo --from etcd-1 --yes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(recoverCommand())
	return cmd
}

func recoverCommand() *cobra.Command {
	var flags connect.Flags
	var yes bool
	q := etcdrecovery.Quorum{Name: "etcd"}
	name, namespace := "", connect.DefaultNamespace
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Recover an etcd that has lost its quorum from the data of one member",
		Long: `Recover an etcd that has lost its quorum from the data of one member.

The HostedCluster is paused and all members are stopped. The member that --from names starts alone and forgets the others. Only when it has served that way are the
volumes of the others deleted; then all members start, and the others join with its data. Finally, the control plane is restarted. Writes that this member had not
received are lost: choose the member with the highest revision. You can interrupt the command and run it again; don't end the pause yourself before it has ended.

While a quorum is ready, the command does nothing: a single failed member is replaced automatically. If no member has its data any more, restore a backup.`,
		Example: `  kubectl -n clusters-demo get pods -l app=etcd
  hypershift etcd recover demo --from etcd-1 --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return fmt.Errorf("the volumes of all members but %s would be deleted: add --yes when its data is the one to go on with", q.From)
			}
			c, err := flags.Client()
			if err != nil {
				return err
			}
			hc := &hyperv1.HostedCluster{}
			q.Cluster = client.ObjectKey{Namespace: namespace, Name: name}
			if err := c.Get(cmd.Context(), q.Cluster, hc); apierrors.IsNotFound(err) {
				return exit.With(exit.NotFound, fmt.Errorf("there is no HostedCluster %s: `kubectl get hostedclusters -A` lists them", q.Cluster))
			} else if err != nil {
				return fmt.Errorf("reading HostedCluster %s: %w", q.Cluster, err)
			}
			if hc.Spec.Etcd.ManagementType != hyperv1.Managed {
				return fmt.Errorf("HostedCluster %s has an etcd of yours: recover it where it runs", q.Cluster)
			}
			q.Client, q.Namespace, q.Log = c, names.NamespaceOf(hc), cmd.OutOrStdout()
			return q.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "Name of the HostedCluster (required)")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", namespace, "Namespace of the HostedCluster")
	cmd.Flags().StringVar(&q.From, "from", "", "Pod of the member whose data goes on, such as etcd-1 (required)")
	cmd.Flags().StringVar(&q.Name, "etcd", q.Name, "StatefulSet of the etcd: etcd, or etcd-SHARD")
	cmd.Flags().BoolVar(&yes, "yes", false, "Delete the volumes of the other members, once this one serves alone")
	flags.AddFlags(cmd.Flags())
	for _, required := range []string{"name", "from"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err) // a misspelt flag above
		}
	}
	connect.CompleteHostedClusters(cmd, &flags, "name", &namespace)
	connect.CompleteNamespaces(cmd, &flags, "namespace")
	return cmd
}
