package describe

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/get"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/contract/names"
)

// What --show takes.
const (
	showIssues = "issues"
	showAll    = "all"
)

// pageSize bounds one answer of the API server, and maxPods what is read of a control plane.
const (
	pageSize = 500
	maxPods  = 2000
)

// Command is "describe".
func Command() *cobra.Command {
	var flags connect.Flags
	var format output.Format
	namespace, show, name := connect.DefaultNamespace, showIssues, ""
	cmd := &cobra.Command{
		Use:     "describe",
		Aliases: []string{"tree"},
		Short:   "Show a hosted cluster as a tree: what is not well, and why",
		Long: `Show a hosted cluster as a tree of its control plane, NodePools, machines and packages. What is well is counted and not shown, so that what is
left is what to look at; --show all shows everything.`,
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
			c, err := flags.Client()
			if err != nil {
				return err
			}
			s, err := observe(cmd.Context(), c, client.ObjectKey{Namespace: namespace, Name: name})
			if err != nil {
				return err
			}
			tree := build(s)
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

// observe reads what belongs to a hosted cluster. What the management cluster has no kind for is left out.
func observe(ctx context.Context, c client.Reader, key client.ObjectKey) (snapshot, error) {
	s := snapshot{cluster: &hyperv1.HostedCluster{}}
	if err := c.Get(ctx, key, s.cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return s, exit.With(exit.NotFound, fmt.Errorf("HostedCluster %s not found: check its name and --namespace", key))
		}
		return s, fmt.Errorf("reading HostedCluster %s: %w", key, err)
	}
	plane := names.ControlPlaneNamespace(key.Namespace, key.Name)
	for _, read := range []func() error{
		func() error {
			return each(ctx, c, &hyperv1.ControlPlaneComponentList{}, plane, func(o runtime.Object) {
				s.components = append(s.components, *o.(*hyperv1.ControlPlaneComponent))
			})
		},
		func() error {
			return each(ctx, c, &corev1.PodList{}, plane, func(o runtime.Object) {
				if len(s.pods) < maxPods {
					s.pods = append(s.pods, *o.(*corev1.Pod))
				}
			})
		},
		func() error {
			return each(ctx, c, &hyperv1.NodePoolList{}, key.Namespace, func(o runtime.Object) {
				if np := o.(*hyperv1.NodePool); np.Spec.ClusterName == key.Name {
					s.pools = append(s.pools, *np)
				}
			})
		},
		func() error {
			return each(ctx, c, &packagesv1.PackageList{}, plane, func(o runtime.Object) { s.packages = append(s.packages, *o.(*packagesv1.Package)) })
		},
		func() (err error) { s.machines, err = get.Machines(ctx, c, s.cluster); return err },
	} {
		if err := read(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// each lists a kind page by page.
func each(ctx context.Context, c client.Reader, list client.ObjectList, namespace string, take func(runtime.Object)) error {
	for {
		err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(list.GetContinue()))
		if meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing %T of namespace %s: %w", list, namespace, err)
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error { take(o); return nil }); err != nil {
			return err
		}
		if list.GetContinue() == "" {
			return nil
		}
	}
}
