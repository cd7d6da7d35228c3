package describe

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/why"
	"hcp.internal/platform/internal/why/observe"
)

// What --show takes.
const (
	showIssues = "issues"
	showAll    = "all"
)

// pageSize bounds one answer of the API server.
const pageSize = 500

// Command is "describe".
func Command() *cobra.Command {
	var flags connect.Flags
	var format output.Format
	namespace, show, name := connect.DefaultNamespace, showIssues, ""
	cmd := &cobra.Command{
		Use:     "describe",
		Aliases: []string{"tree"},
		Short:   "Show a hosted cluster as a tree: what is unhealthy, and why",
		Long: `Show a hosted cluster as a tree of its control plane, NodePools, machines and packages. Healthy objects are counted and not shown, so that
only what needs attention remains; --show all shows everything. The causes are those of "hypershift why".`,
		Example: `  hypershift describe demo
  hypershift describe demo --show all
  hypershift describe demo -o json`,
		Args:        cobra.NoArgs,
		Annotations: map[string]string{connect.QuietNamespace: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if show != showIssues && show != showAll {
				return fmt.Errorf("--show %q: must be %s or %s", show, showIssues, showAll)
			}
			if name == "" {
				return fmt.Errorf("--name is required: name a hosted cluster; `hypershift get clusters -A` lists them")
			}
			if kind, rest, ok := strings.Cut(name, "/"); ok {
				if kind != "hc" && kind != "hostedcluster" {
					return fmt.Errorf("%q: describe shows hosted clusters with all that they have: `hypershift describe NAME`; `hypershift why %s` tells of this one alone", name, name)
				}
				name = rest
			}
			c, err := flags.Client()
			if err != nil {
				return err
			}
			snap, err := look(cmd.Context(), c, client.ObjectKey{Namespace: namespace, Name: name})
			if err != nil {
				return err
			}
			tree := build(snap)
			if show == showIssues {
				tree.prune()
			}
			if format != output.Text {
				return format.Value(cmd.OutOrStdout(), tree)
			}
			return tree.print(cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&name, "name", "", "Name of the hosted cluster (required)")
	fs.StringVarP(&namespace, "namespace", "n", namespace, "Namespace of the HostedCluster")
	fs.StringVar(&show, "show", show, "What to show: issues, or all")
	flags.AddFlags(fs)
	format.AddFlag(cmd)
	connect.CompleteHostedClusters(cmd, &flags, "name", &namespace)
	connect.CompleteNamespaces(cmd, &flags, "namespace")
	_ = cmd.RegisterFlagCompletionFunc("show", cobra.FixedCompletions([]string{showIssues, showAll}, cobra.ShellCompDirectiveNoFileComp)) // only fails for a flag that isn't there
	return cmd
}

// look reads what belongs to a hosted cluster, as `hypershift why` does, and the packages of its control plane.
func look(ctx context.Context, c client.Reader, key client.ObjectKey) (*why.Snapshot, error) {
	snap, err := observe.Observer{Client: c}.Snapshot(ctx, why.Object{Kind: "HostedCluster", Namespace: key.Namespace, Name: key.Name})
	if apierrors.IsNotFound(err) {
		return nil, exit.With(exit.NotFound, fmt.Errorf("HostedCluster %s not found: check its name and --namespace", key))
	}
	if err != nil {
		return nil, fmt.Errorf("looking at HostedCluster %s: %w", key, err)
	}
	list := &packagesv1.PackageList{}
	for err := range read.Pages(ctx, c, list, pageSize, client.InNamespace(names.ControlPlaneNamespace(key.Namespace, key.Name))) {
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err): // without the package operator there are none
		case err != nil:
			snap.Unread["Package"] = err.Error()
		default:
			snap.Packages = append(snap.Packages, list.Items...)
		}
	}
	return snap, nil
}
