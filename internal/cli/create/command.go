package create

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/cli/progress"
)

// Command is `hypershift create` with the subcommands cluster and nodepool.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create hosted clusters and node pools, print kubeconfigs",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	clusters := &cobra.Command{
		Use:   "cluster",
		Short: "Create a hosted cluster",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	pools := &cobra.Command{
		Use:     "nodepool",
		Aliases: []string{"nodepools"},
		Short:   "Create a set of workers of a hosted cluster",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, platform := range []hyperv1.PlatformType{hyperv1.NonePlatform, hyperv1.LocalPlatform} {
		clusters.AddCommand(clusterCommand(platform))
		pools.AddCommand(nodePoolCommand(platform))
	}
	cmd.AddCommand(clusters, pools)
	return cmd
}

var clusterTexts = map[hyperv1.PlatformType]struct{ short, long, example string }{
	hyperv1.NonePlatform: {
		short: "Create a hosted cluster whose workers you bring yourself",
		long: `Create a hosted cluster whose workers you bring yourself.

The API is published by node port, at the address of a node of the management cluster unless you name one, or by a load
balancer. Creating the same cluster again changes what you changed and keeps keys.`,
		example: `  # Publish by a load balancer and wait until the API answers
  hypershift create cluster none --name demo --base-domain example.com --pull-secret ~/pull-secret.json \
    --release-image registry.example.com/hypershift/release:1.36.3 --expose-through-load-balancer --wait

  # Look first, apply with your own tools
  hypershift create cluster none --name demo --pull-secret ~/pull-secret.json --external-api-server-address api.example.com \
    --release-image registry.example.com/hypershift/release:1.36.3 --render --render-sensitive > demo.yaml`,
	},
	hyperv1.LocalPlatform: {
		short: "Create a hosted cluster in the local management cluster",
		long: `Create a hosted cluster in the management cluster that ` + "`hypershift local up`" + ` started on this machine.

The API gets an address of its own on this machine. No pull secret is needed for the local registry.`,
		example: `  hypershift create cluster local --name demo --release-image 10.244.0.1:5000/hypershift/release:1.36.3 --wait
  hypershift create cluster local --name big --control-plane-availability-policy HighlyAvailable \
    --release-image 10.244.0.1:5000/hypershift/release:1.36.3`,
	},
}

func clusterCommand(platform hyperv1.PlatformType) *cobra.Command {
	o := NewOptions(platform)
	raw := &rawFlags{}
	var r renderFlags
	texts := clusterTexts[platform]
	cmd := &cobra.Command{
		Use:     platformArg(platform),
		Short:   texts.short,
		Long:    texts.long,
		Example: texts.example,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := raw.load(&o); err != nil {
				return err
			}
			if platform == hyperv1.LocalPlatform && o.APIServerAddress != "" && !cmd.Flags().Changed("expose-through-load-balancer") {
				o.LoadBalancer = false
			}
			if r.wanted() {
				return r.run(cmd, func(out io.Writer) error {
					return Render(cmd.Context(), o, RenderOptions{Format: r.format, Sensitive: r.sensitive}, out, cmd.ErrOrStderr())
				})
			}
			if err := Cluster(cmd.Context(), o, cmd.OutOrStdout()); err != nil {
				return err
			}
			printNext(cmd.OutOrStdout(), o)
			return nil
		},
	}
	addClusterFlags(cmd.Flags(), &o, raw)
	o.Connect.AddFlags(cmd.Flags())
	r.add(cmd)
	cmd.Flags().BoolVar(&o.Wait, "wait", o.Wait, "Wait until the cluster can be used")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", o.Timeout, "How long to wait with --wait; 0: for ever")
	completeValues(cmd, "control-plane-availability-policy", string(hyperv1.SingleReplica), string(hyperv1.HighlyAvailable))
	completeValues(cmd, "infra-availability-policy", string(hyperv1.SingleReplica), string(hyperv1.HighlyAvailable))
	completeValues(cmd, "network-type", string(hyperv1.OVNKubernetes), string(hyperv1.Other), string(hyperv1.Calico))
	completeNodePoolValues(cmd)
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	return cmd
}

// printNext says what a person will want to do next.
func printNext(out io.Writer, o Options) {
	if !o.Wait {
		fmt.Fprintf(out, "\nWatch it come up:\n  kubectl get hostedcluster %s --namespace %s --watch\n", o.Name, o.Namespace)
	}
	fmt.Fprintf(out, "\nUse it:\n  hypershift create kubeconfig --name %s --namespace %s > %s.kubeconfig\n  export KUBECONFIG=%s.kubeconfig\n",
		o.Name, o.Namespace, o.Name, o.Name)
}

// renderFlags are the flags of commands that can print what they would create.
type renderFlags struct {
	render, sensitive bool
	into              string
	format            output.Format
}

func (r *renderFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.render, "render", false, "Print what would be created instead of creating it")
	cmd.Flags().StringVar(&r.into, "render-into", "", "File to write with --render instead of standard output")
	cmd.Flags().BoolVar(&r.sensitive, "render-sensitive", false, "Print Secrets, too")
	r.format.AddFlag(cmd)
}

func (r *renderFlags) wanted() bool { return r.render || r.into != "" || r.format != output.Text }

func (r *renderFlags) run(cmd *cobra.Command, write func(io.Writer) error) error {
	if r.into == "" {
		return write(cmd.OutOrStdout())
	}
	var buffer bytes.Buffer
	if err := write(&buffer); err != nil {
		return err
	}
	// Only for the user: it may hold Secrets.
	if err := os.WriteFile(r.into, buffer.Bytes(), 0o600); err != nil {
		return fmt.Errorf("--render-into: %w", err)
	}
	return nil
}

func nodePoolCommand(platform hyperv1.PlatformType) *cobra.Command {
	o := NewNodePoolOptions(platform)
	var flags connect.Flags
	var r renderFlags
	arg := platformArg(platform)
	cmd := &cobra.Command{
		Use:     arg,
		Short:   "Create a NodePool of a hosted cluster on platform " + string(platform),
		Example: fmt.Sprintf("  hypershift create nodepool %s --cluster-name demo --name demo-workers --replicas 3", arg),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.wanted() {
				return r.run(cmd, func(out io.Writer) error { return renderNodePool(cmd.Context(), flags, o, r, out, cmd.ErrOrStderr()) })
			}
			return createNodePool(cmd.Context(), flags, o, cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Name, "name", o.Name, "Name of the NodePool (required)")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the HostedCluster and the NodePool")
	fs.StringVar(&o.ClusterName, "cluster-name", o.ClusterName, "Name of the HostedCluster (required)")
	fs.Int32Var(&o.Replicas, "replicas", o.Replicas, "Number of workers")
	fs.Int32Var(&o.Replicas, "node-count", o.Replicas, "Number of workers")
	_ = fs.MarkDeprecated("node-count", "use --replicas")
	fs.StringVar(&o.ReleaseImage, "release-image", o.ReleaseImage, "Release image of the workers (default: that of the HostedCluster)")
	addNodePoolFlags(fs, &o)
	flags.AddFlags(fs)
	r.add(cmd)
	completeNodePoolValues(cmd)
	connect.CompleteNamespaces(cmd, &flags, "namespace")
	connect.CompleteHostedClusters(cmd, &flags, "cluster-name", &o.Namespace)
	return cmd
}

func renderNodePool(ctx context.Context, flags connect.Flags, o NodePoolOptions, r renderFlags, out, notes io.Writer) error {
	if o.ReleaseImage == "" {
		c, err := flags.Client()
		if err != nil {
			return fmt.Errorf("give --release-image to render without a management cluster: %w", err)
		}
		if err := completeNodePool(ctx, &o, c); err != nil {
			return err
		}
	}
	if err := errors.Join(label("--name", o.Name), label("--cluster-name", o.ClusterName), label("--namespace", o.Namespace), o.validate()); err != nil {
		return err
	}
	return render([]client.Object{NodePool(o)}, RenderOptions{Format: r.format}, out, notes)
}

func createNodePool(ctx context.Context, flags connect.Flags, o NodePoolOptions, out io.Writer) error {
	if err := errors.Join(label("--name", o.Name), label("--cluster-name", o.ClusterName), label("--namespace", o.Namespace), o.validate()); err != nil {
		return err
	}
	c, err := flags.Client()
	if err != nil {
		return err
	}
	if err := completeNodePool(ctx, &o, c); err != nil {
		return err
	}
	return apply(ctx, c, progress.New(out, nil), NodePool(o))
}

// completeNodePool takes the release from the cluster, and refuses a pool of another platform than the cluster's.
func completeNodePool(ctx context.Context, o *NodePoolOptions, c client.Client) error {
	hc := &hyperv1.HostedCluster{}
	err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.ClusterName}, hc)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("HostedCluster %s/%s not found: check --cluster-name and --namespace", o.Namespace, o.ClusterName)
	}
	if err != nil {
		return fmt.Errorf("reading HostedCluster %s/%s: %w", o.Namespace, o.ClusterName, err)
	}
	if hc.Spec.Platform.Type != o.Platform {
		return fmt.Errorf("HostedCluster %s/%s is of platform %s, not %s", o.Namespace, o.ClusterName, hc.Spec.Platform.Type, o.Platform)
	}
	if o.ReleaseImage == "" {
		o.ReleaseImage = hc.Spec.Release.Image
	}
	return nil
}

func completeNodePoolValues(cmd *cobra.Command) {
	completeValues(cmd, "arch", hyperv1.ArchitectureAMD64, hyperv1.ArchitectureARM64)
	completeValues(cmd, "node-upgrade-type", string(hyperv1.UpgradeTypeReplace), string(hyperv1.UpgradeTypeInPlace))
}

func completeValues(cmd *cobra.Command, flag string, values ...string) {
	// Only fails for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
