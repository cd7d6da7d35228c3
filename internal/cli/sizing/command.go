// Package sizing are the commands about sizes of hosted clusters: "sizing plan", what would change its size, and "capacity", how many more fit.
package sizing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/sizing"
)

// maxManifest bounds a ClusterSizingConfiguration in a file, in bytes.
const maxManifest = 1 << 20

// Command is "sizing".
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sizing",
		Short: "Preview sizes of hosted clusters",
		Example: `  hypershift sizing plan
  hypershift sizing plan -f sizes.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(planCommand())
	return cmd
}

// Row is what a plan says of one HostedCluster.
type Row struct {
	// Cluster is NAMESPACE/NAME.
	Cluster string `json:"cluster"`
	// Size is what it has, Wanted what it should have; empty: nobody knows.
	Size   string `json:"size,omitempty"`
	Wanted string `json:"wanted,omitempty"`
	// When it would change: "now", or after how long at the earliest; empty: it doesn't.
	When string `json:"when,omitempty"`
	Why  string `json:"why"`
	// Effects are the annotations that would change, with - before those that would be taken away.
	Effects []string `json:"effects,omitempty"`
}

func planCommand() *cobra.Command {
	var flags connect.Flags
	var format output.Format
	file := ""
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show which hosted clusters would change their size, when and why",
		Long: `Show which hosted clusters would change their size, when and why, and the effects. Nothing is written.

The decision is the operator's own, for the present clusters. With -f, it uses the sizes in a file.`,
		Example: `  hypershift sizing plan
  # before applying other sizes
  hypershift sizing plan -f sizes.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.Client()
			if err != nil {
				return err
			}
			spec, err := configuration(cmd.Context(), c, file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			rows, err := Plan(cmd.Context(), c, spec, time.Now())
			if err != nil {
				return err
			}
			if format != output.Text {
				return format.Value(cmd.OutOrStdout(), rows)
			}
			return errors.Join(printPlan(cmd.OutOrStdout(), rows), printNodes(cmd.OutOrStdout(), spec, rows))
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "File with a ClusterSizingConfiguration to plan for instead of that of the management cluster; - for standard input")
	flags.AddFlags(cmd.Flags())
	format.AddFlag(cmd)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // only fails for a flag that isn't there
	return cmd
}

// configuration is that of a file, or that of the management cluster.
func configuration(ctx context.Context, c client.Reader, file string, stdin io.Reader) (*schedulingv1alpha1.ClusterSizingConfigurationSpec, error) {
	config := &schedulingv1alpha1.ClusterSizingConfiguration{}
	if file != "" {
		raw, err := readManifest(file, stdin)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(raw, config); err != nil {
			return nil, fmt.Errorf("-f %s: %w", file, err)
		}
		if config.Kind != "ClusterSizingConfiguration" {
			return nil, fmt.Errorf("-f %s: the kind is %q: give a ClusterSizingConfiguration", file, config.Kind)
		}
	} else if err := c.Get(ctx, client.ObjectKey{Name: sizing.ConfigurationName}, config); apierrors.IsNotFound(err) {
		return nil, exit.With(exit.NotFound, errors.New("there is no ClusterSizingConfiguration cluster: install with --enable-size-tagging, or give a file with -f"))
	} else if err != nil {
		return nil, fmt.Errorf("reading ClusterSizingConfiguration %s: %w", sizing.ConfigurationName, err)
	}
	if err := sizing.Check(&config.Spec); err != nil {
		return nil, fmt.Errorf("the sizes make no sense, and hosted clusters would keep those that they have: %w", err)
	}
	return &config.Spec, nil
}

func readManifest(file string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("-f %s: %w", file, err)
		}
		defer f.Close()
		from = f
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("-f %s: %w", file, err)
	}
	if len(raw) > maxManifest {
		return nil, fmt.Errorf("-f %s is larger than %d bytes", file, maxManifest)
	}
	return raw, nil
}

// Plan decides about every HostedCluster, by namespace and name.
func Plan(ctx context.Context, c client.Reader, spec *schedulingv1alpha1.ClusterSizingConfigurationSpec, now time.Time) ([]Row, error) {
	list := &hyperv1.HostedClusterList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing HostedClusters: %w", err)
	}
	config := sizing.ConfigOf(spec)
	var fleet []sizing.Cluster
	for i := range list.Items {
		fleet = append(fleet, sizing.ClusterOf(&list.Items[i], now))
	}
	rows := []Row{}
	for i := range list.Items {
		hc := &list.Items[i]
		hcp, err := read.Optional(ctx, c, client.ObjectKey{Namespace: names.NamespaceOf(hc), Name: hc.Name}, &hyperv1.HostedControlPlane{})
		if err != nil {
			return nil, err
		}
		pools, err := operator.NodePoolsOf(ctx, c, hc)
		if err != nil {
			return nil, err
		}
		want := config.Sizes.WantedFor(hc, sizing.CountNodes(hc, hcp, pools))
		d := sizing.Decide(config, hc, want, fleet, now)
		row := Row{Cluster: names.BackReference(hc), Size: hc.Labels[hyperv1.HostedClusterSizeLabel], Wanted: want.Size, Why: d.Why}
		switch {
		case d.To != "":
			row.When = "now"
		case d.Again > 0:
			row.When = "in " + d.Again.Round(time.Second).String() + " at the earliest"
		}
		if size := config.Sizes.Named(want.Size); size != nil {
			row.Effects = effects(hc, size)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func effects(hc *hyperv1.HostedCluster, size *schedulingv1alpha1.SizeConfiguration) (out []string) {
	for key, value := range sizing.Changes(hc, sizing.Effects(size)) {
		switch {
		case key == sizing.AppliedAnnotation:
		case value == nil:
			out = append(out, "-"+key)
		default:
			out = append(out, key+"="+*value)
		}
	}
	slices.Sort(out)
	return out
}

// printNodes says how many nodes each zone will need, where the sizes do.
func printNodes(w io.Writer, spec *schedulingv1alpha1.ClusterSizingConfigurationSpec, rows []Row) error {
	var sizes []string
	for _, r := range rows {
		sizes = append(sizes, cmp.Or(r.Wanted, r.Size))
	}
	nodes, ok := sizing.NodesPerZone(spec, sizes)
	if !ok {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nNodes that each zone needs for what doesn't serve requests, with these sizes: %d\n", nodes)
	return err
}

func printPlan(w io.Writer, rows []Row) error {
	table := [][]string{{"CLUSTER", "SIZE", "WANTED", "CHANGES", "WHY"}}
	for _, r := range rows {
		table = append(table, []string{r.Cluster, dash(r.Size), dash(r.Wanted), dash(r.When), r.Why})
	}
	if err := output.Table(w, table); err != nil {
		return err
	}
	for _, r := range rows {
		if len(r.Effects) > 0 {
			if _, err := fmt.Fprintf(w, "\nAnnotations of %s that would change:\n", r.Cluster); err != nil {
				return err
			}
			for _, e := range r.Effects {
				if _, err := fmt.Fprintf(w, "  %s\n", e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
