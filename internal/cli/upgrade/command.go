package upgrade

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/release"
)

// What --show takes.
const (
	showSummary = "summary"
	showAll     = "all"
)

// options are the flags of `upgrade preview`.
type options struct {
	connect            connect.Flags
	image, release     string
	program            string
	namespace, cluster string
	operators          string
	show               string
	format             output.Format
}

// Command is "upgrade".
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "upgrade",
		Short:   "Preview an upgrade",
		Example: `  hypershift upgrade preview --hypershift-image registry.example.com/hypershift/operator:1.3`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(previewCommand())
	return cmd
}

func previewCommand() *cobra.Command {
	o := &options{operators: "hypershift", show: showSummary}
	cmd := &cobra.Command{
		Use:   "preview",
		Short: "Show what an upgrade would change in every hosted cluster, and whether it would replace machines",
		Long: `Show what an upgrade of the product (--hypershift-image) or of the hosted clusters (--release-image) would change: for each hosted cluster, the fields
of its control plane's objects and which workloads get new pods, and for each NodePool whether its machines would be replaced. An upgrade of the product
should replace none. Nothing is written to any cluster.

Control planes are rendered twice, as by render components: in their present and in their future state. This program represents the new version, so use
the one that belongs to --hypershift-image. It represents the installed version, too, unless --installed-program names a hypershift of that version: then
changes of the program itself are shown as well. Machines are judged by their present state. Rendering needs to read Secrets of control planes; their
values are not shown.

Exit codes: 0 no objection; 1 something could not be determined; 2 machines would be replaced, an API in use would be removed, or a release is
refused; 3 the versions are too far apart.`,
		Example: `  hypershift upgrade preview --hypershift-image registry.example.com/hypershift/operator:1.3
  hypershift upgrade preview --hypershift-image registry.example.com/hypershift/operator:1.3 --installed-program ./hypershift-1.2 -o json
  hypershift upgrade preview --release-image registry.example.com/hypershift/release:1.36.4 -n clusters --cluster demo --show all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.image, "hypershift-image", "", "Image of the operators to upgrade to")
	fs.StringVar(&o.release, "release-image", "", "Release to upgrade hosted clusters to")
	fs.StringVar(&o.program, "installed-program", "", "A hypershift program of the installed version, to render what there is (default: this program)")
	fs.StringVarP(&o.namespace, "namespace", "n", "", "Only HostedClusters of this namespace (default: all)")
	fs.StringVar(&o.cluster, "cluster", "", "Only this HostedCluster")
	fs.StringVar(&o.operators, "operator-namespace", o.operators, "Namespace of the operator")
	fs.StringVar(&o.show, "show", o.show, "What to show of each hosted cluster: summary, or all")
	o.connect.AddFlags(fs)
	o.format.AddFlag(cmd)
	connect.CompleteNamespaces(cmd, &o.connect, "namespace")
	connect.CompleteHostedClusters(cmd, &o.connect, "cluster", &o.namespace)
	_ = cmd.RegisterFlagCompletionFunc("show", cobra.FixedCompletions([]string{showSummary, showAll}, cobra.ShellCompDirectiveNoFileComp)) // only fails for a flag that isn't there
	return cmd
}

func (o *options) run(cmd *cobra.Command) error {
	switch {
	case o.image == "" && o.release == "":
		return errors.New("name what to upgrade to: --hypershift-image, --release-image, or both")
	case o.show != showSummary && o.show != showAll:
		return fmt.Errorf("--show %q: must be %s or %s", o.show, showSummary, showAll)
	}
	config, err := o.connect.RESTConfig()
	if err != nil {
		return err
	}
	c, err := newClients(config)
	if err != nil {
		return err
	}
	p := &preview{options: o, clients: c, releases: release.NewRegistryProvider(release.Options{})}
	report, err := p.run(cmd.Context())
	if err != nil {
		return err
	}
	if o.format != output.Text {
		err = o.format.Value(cmd.OutOrStdout(), report)
	} else {
		err = report.print(cmd.OutOrStdout(), o.show == showAll)
	}
	if err != nil {
		return err
	}
	return report.verdict()
}
