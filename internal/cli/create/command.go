package create

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/cli/outputfile"
	"hcp.internal/platform/internal/cli/progress"
)

// Command is `hypershift create` with the subcommands cluster and nodepool.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create hosted clusters and node pools, print kubeconfigs",
		Example: `  hypershift create cluster local --name demo --wait
  hypershift create nodepool local --cluster-name demo --name more --replicas 2
  hypershift create kubeconfig --name demo > demo.kubeconfig`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	clusters := &cobra.Command{
		Use:   "cluster",
		Short: "Create a hosted cluster",
		Example: `  hypershift create cluster local --name demo --wait
  hypershift create cluster none --name demo --pull-secret ~/pull-secret.json --expose-through-load-balancer \
    --release-image registry.example.com/hypershift/release:1.36.3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	pools := &cobra.Command{
		Use:     "nodepool",
		Aliases: []string{"nodepools"},
		Short:   "Create a set of workers for a hosted cluster",
		Example: `  hypershift create nodepool local --cluster-name demo --name more --replicas 2`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, p := range platforms {
		clusters.AddCommand(clusterCommand(p.kind))
		pools.AddCommand(nodePoolCommand(p.kind))
	}
	cmd.AddCommand(clusters, pools)
	return cmd
}

func clusterCommand(platform hyperv1.PlatformType) *cobra.Command {
	o := NewOptions(platform)
	raw := &rawFlags{}
	var r renderFlags
	texts := platformOf(platform).text
	cmd := &cobra.Command{
		Use:     PlatformArg(platform),
		Short:   texts.short,
		Long:    texts.long,
		Example: texts.example,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runCluster(cmd, &o, raw, &r) },
	}
	addClusterFlags(cmd.Flags(), &o, raw)
	if o.cloud != nil {
		o.cloud.addFlags(cmd.Flags())
	}
	o.Connect.AddFlags(cmd.Flags())
	o.Connect.DryRun.AddFlag(cmd)
	r.add(cmd)
	cmd.Flags().BoolVar(&o.Wait, "wait", o.Wait, "Wait until the cluster can be used")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", o.Timeout, "How long to wait with --wait; 0 means no limit")
	completeValues(cmd, "control-plane-availability-policy", string(hyperv1.SingleReplica), string(hyperv1.HighlyAvailable))
	completeValues(cmd, "infra-availability-policy", string(hyperv1.SingleReplica), string(hyperv1.HighlyAvailable))
	completeValues(cmd, "network-type", string(hyperv1.OVNKubernetes), string(hyperv1.Other), string(hyperv1.Calico))
	completeValues(cmd, "feature-set", string(configv1.TechPreviewNoUpgrade), string(configv1.DevPreviewNoUpgrade))
	completeValues(cmd, "olm-catalog-placement", string(hyperv1.ManagementOLMCatalogPlacement), string(hyperv1.GuestOLMCatalogPlacement))
	completeNodePoolValues(cmd, architectures(platform))
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	connect.CompleteStorageClasses(cmd, &o.Connect, "etcd-storage-class")
	return cmd
}

// runCluster is `create cluster PLATFORM`.
func runCluster(cmd *cobra.Command, o *Options, raw *rawFlags, r *renderFlags) error {
	if err := r.check(o.Connect); err != nil {
		return err
	}
	if m, ok := o.cloud.(maker); ok && !r.wanted() {
		cleanup, err := m.make(cmd.Context(), raw, cmd.Flags(), o, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer cleanup()
	}
	if err := raw.load(cmd.Flags(), o); err != nil {
		return err
	}
	o.settle(cmd.Flags())
	for _, note := range o.notes {
		fmt.Fprintln(cmd.ErrOrStderr(), note)
	}
	if r.wanted() {
		return r.run(cmd, func(out io.Writer) error {
			return Render(cmd.Context(), *o, RenderOptions{Format: r.format, Sensitive: r.sensitive}, out, cmd.ErrOrStderr())
		})
	}
	progress := r.progress(cmd)
	o.Wait = o.Wait && o.Connect.DryRun == connect.NoDryRun
	if err := Cluster(cmd.Context(), *o, progress); err != nil {
		return err
	}
	if r.format != output.Text {
		return r.result(cmd, o.Connect, &hyperv1.HostedCluster{
			TypeMeta: metav1.TypeMeta{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster"}, ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}})
	}
	if o.Connect.DryRun != connect.NoDryRun {
		fmt.Fprintln(progress, "Nothing has been changed.")
		return nil
	}
	printNext(progress, *o)
	return nil
}

// settle decides what depends on which flags were given.
func (o *Options) settle(flags *pflag.FlagSet) {
	o.chosen = changedFlags(flags)
	o.ScalePools = flags.Changed("node-pool-replicas")
	if flags.Changed("network-type") && o.NetworkType != hyperv1.Other && !flags.Changed("allocate-node-cidrs") {
		o.AllocateNodeCIDRs = false
	}
	if o.Platform == hyperv1.LocalPlatform && o.APIServerAddress != "" && !flags.Changed("expose-through-load-balancer") {
		o.LoadBalancer = false
	}
}

// printNext says what a person will want to do next.
func printNext(out io.Writer, o Options) {
	if !o.Wait {
		fmt.Fprintf(out, "\nWatch it come up:\n  kubectl get hostedcluster %s --namespace %s --watch\n", o.Name, o.Namespace)
	}
	fmt.Fprintf(out, "\nUse it:\n  hypershift create kubeconfig %s --namespace %s --output-file %s.kubeconfig\n  export KUBECONFIG=%s.kubeconfig\n",
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
	cmd.Flags().BoolVar(&r.sensitive, "render-sensitive", false, "Also print Secrets")
	r.format.AddObjectFlag(cmd)
}

func (r *renderFlags) wanted() bool { return r.render || r.into != "" }

// progress is where people read what goes on: with --output, standard output is for the result alone.
func (r *renderFlags) progress(cmd *cobra.Command) io.Writer {
	if r.format != output.Text {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
}

// result prints an object as the API server has it.
func (r *renderFlags) result(cmd *cobra.Command, flags connect.Flags, obj client.Object) error {
	if r.format == output.Name {
		gvk := obj.GetObjectKind().GroupVersionKind() // as kubectl prints it: "hostedcluster.hypershift.openshift.io/demo"
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s.%s/%s\n", strings.ToLower(gvk.Kind), gvk.Group, obj.GetName())
		return err
	}
	c, err := flags.Client()
	if err != nil {
		return err
	}
	if err := c.Get(cmd.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		return fmt.Errorf("reading what was created: %w", err)
	}
	u, err := connect.Unstructured(c.Scheme(), obj)
	if err != nil {
		return err
	}
	return r.format.Value(cmd.OutOrStdout(), u.Object)
}

// check refuses formats of what nobody has, before anything is done.
func (r *renderFlags) check(flags connect.Flags) error {
	switch {
	case r.wanted() && r.format == output.Name:
		return errors.New("-o name: --render prints whole objects: use json or yaml")
	case flags.DryRun != connect.NoDryRun && r.wanted():
		return errors.New("--dry-run and --render exclude each other: leave one out")
	case flags.DryRun != connect.NoDryRun && r.format != output.Text && r.format != output.Name:
		return fmt.Errorf("--dry-run=%s stores no object that could be printed: use --render -o %s, or -o name", flags.DryRun, r.format)
	}
	return nil
}

func (r *renderFlags) run(cmd *cobra.Command, write func(io.Writer) error) error {
	if r.into == "" {
		return write(cmd.OutOrStdout())
	}
	var buffer bytes.Buffer
	if err := write(&buffer); err != nil {
		return err
	}
	access := outputfile.AsBefore
	if r.sensitive {
		access = outputfile.Private
	}
	if err := outputfile.Write(r.into, buffer.Bytes(), access); err != nil {
		return fmt.Errorf("--render-into: %w", err)
	}
	return nil
}

func nodePoolCommand(platform hyperv1.PlatformType) *cobra.Command {
	o := NewNodePoolOptions(platform)
	var flags connect.Flags
	var r renderFlags
	arg := PlatformArg(platform)
	cmd := &cobra.Command{
		Use:     arg,
		Short:   "Create a NodePool of a hosted cluster on platform " + string(platform),
		Example: poolExample(platformOf(platform)),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.machines != nil {
				if err := o.machines.load(cmd.Flags(), &o); err != nil {
					return err
				}
			}
			if err := r.check(flags); err != nil {
				return err
			}
			if r.wanted() {
				return r.run(cmd, func(out io.Writer) error { return renderNodePool(cmd.Context(), flags, o, r, out, cmd.ErrOrStderr()) })
			}
			if err := createNodePool(cmd.Context(), flags, o, changedFlags(cmd.Flags()), r.progress(cmd)); err != nil || r.format == output.Text {
				return err
			}
			return r.result(cmd, flags, &hyperv1.NodePool{
				TypeMeta: metav1.TypeMeta{APIVersion: hyperv1.GroupVersion.String(), Kind: "NodePool"}, ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Name, "name", o.Name, "Name of the NodePool (required)")
	fs.StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "Namespace of the HostedCluster and the NodePool")
	fs.StringVar(&o.ClusterName, "cluster-name", o.ClusterName, "Name of the HostedCluster (required)")
	fs.Int32Var(&o.Replicas, "replicas", o.Replicas, "Number of workers")
	fs.Int32Var(&o.Replicas, "node-count", o.Replicas, "Number of workers")
	_ = fs.MarkDeprecated("node-count", "use --replicas")
	fs.StringVar(&o.ReleaseImage, "release-image", o.ReleaseImage, "Release image of the workers (default: that of the HostedCluster)")
	addNodePoolFlags(fs, &o)
	if o.machines != nil {
		o.machines.addFlags(fs)
	}
	flags.AddFlags(fs)
	flags.DryRun.AddFlag(cmd)
	r.add(cmd)
	completeNodePoolValues(cmd, architectures(platform))
	connect.CompleteNamespaces(cmd, &flags, "namespace")
	_ = cmd.RegisterFlagCompletionFunc("name", cobra.NoFileCompletions) // a new one; only fails for a flag that isn't there
	connect.CompleteHostedClusters(cmd, &flags, "cluster-name", &o.Namespace)
	return cmd
}

func poolExample(p platform) string {
	if p.text.poolExample != "" {
		return p.text.poolExample
	}
	return fmt.Sprintf("  hypershift create nodepool %s --cluster-name demo --name demo-workers --replicas 3", p.arg)
}

func renderNodePool(ctx context.Context, flags connect.Flags, o NodePoolOptions, r renderFlags, out, notes io.Writer) error {
	if err := o.validateAlone(); err != nil {
		return err
	}
	if open := o.leftOpen(); len(open) > 0 {
		c, err := flags.Client()
		if err == nil {
			err = completeNodePool(ctx, &o, c)
		}
		if err != nil {
			return fmt.Errorf("give %s to render without the HostedCluster: %w", strings.Join(open, ", "), err)
		}
	}
	return render([]client.Object{nodePoolOf(o)}, RenderOptions{Format: r.format}, out, notes)
}

// createNodePool creates the pool, or changes in the one that is there what the flags of these names say.
func createNodePool(ctx context.Context, flags connect.Flags, o NodePoolOptions, given []string, out io.Writer) error {
	if err := o.validateAlone(); err != nil {
		return err
	}
	c, err := flags.Client()
	if err != nil {
		return err
	}
	hc, err := clusterOf(ctx, c, o)
	if err != nil {
		return err
	}
	p := progress.New(out, nil)
	existing, err := existingPool(ctx, c, o)
	if err != nil {
		return err
	}
	if existing == nil {
		whole := o
		if err := whole.complete(hc); err != nil {
			return err
		}
		made, err := createPool(ctx, c, p, nodePoolOf(whole))
		if made || err != nil {
			return err
		}
		if existing, err = existingPool(ctx, c, o); err != nil { // that somebody else made at this moment
			return err
		}
	}
	return changePool(ctx, c, p, existing, o, given)
}

// completeNodePool takes from the cluster what flags don't say, and refuses a pool of another platform than the cluster's.
func completeNodePool(ctx context.Context, o *NodePoolOptions, c client.Client) error {
	hc, err := clusterOf(ctx, c, *o)
	if err != nil {
		return err
	}
	return o.complete(hc)
}

// clusterOf reads the cluster that a pool is for, and refuses one of another platform.
func clusterOf(ctx context.Context, c client.Client, o NodePoolOptions) (*hyperv1.HostedCluster, error) {
	hc := &hyperv1.HostedCluster{}
	err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.ClusterName}, hc)
	if apierrors.IsNotFound(err) {
		return nil, exit.With(exit.NotFound, fmt.Errorf("HostedCluster %s/%s not found: check --cluster-name and --namespace", o.Namespace, o.ClusterName))
	}
	if err != nil {
		return nil, fmt.Errorf("reading HostedCluster %s/%s: %w", o.Namespace, o.ClusterName, err)
	}
	if hc.Spec.Platform.Type != o.Platform {
		return nil, fmt.Errorf("HostedCluster %s/%s uses platform %s: run `hypershift create nodepool %s`", o.Namespace, o.ClusterName, hc.Spec.Platform.Type, PlatformArg(hc.Spec.Platform.Type))
	}
	return hc, nil
}

// complete takes from the cluster what flags don't say.
func (o *NodePoolOptions) complete(hc *hyperv1.HostedCluster) error {
	if o.ReleaseImage == "" {
		o.ReleaseImage = hc.Spec.Release.Image
	}
	if o.machines != nil {
		return o.machines.complete(hc)
	}
	return nil
}

func completeNodePoolValues(cmd *cobra.Command, arches []string) {
	completeValues(cmd, "arch", arches...)
	completeValues(cmd, "node-upgrade-type", string(hyperv1.UpgradeTypeReplace), string(hyperv1.UpgradeTypeInPlace))
}

func completeValues(cmd *cobra.Command, flag string, values ...string) {
	// Only fails for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
