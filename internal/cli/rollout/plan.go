package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/packages/control/hostedclusterpackage"
	"hcp.internal/platform/internal/packages/control/rollout"
)

type planOptions struct {
	connect.Flags
	file       string
	perCluster time.Duration
	fail       []string
	format     output.Format
}

// Plan is "rollout plan".
func Plan() *cobra.Command {
	o := planOptions{perCluster: 2 * time.Minute}
	cmd := &cobra.Command{
		Use:   "plan {-f FILE | hostedclusterpackage/NAME}",
		Short: "Show what a HostedClusterPackage would do to the fleet, without doing it",
		Long: `Show the waves of a rollout, which clusters are skipped and why, how the budget is used and how long it takes.

The controller's own planner computes the plan, for the present clusters and packages. Nothing is written.`,
		Example: `  # before applying a change
  kubectl package rollout plan -f addon.yaml --time-per-cluster 3m
  # what if a cluster fails?
  kubectl package rollout plan -f addon.yaml --fail clusters/canary
  # what is left of a rollout that runs
  kubectl package rollout plan hostedclusterpackage/addon -o json`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: complete(&o.Flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.Client()
			if err != nil {
				return err
			}
			owner, err := o.owner(cmd.Context(), c, cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			p, err := o.preview(cmd.Context(), c, owner, time.Now())
			if err != nil {
				return err
			}
			if o.format != output.Text {
				return o.format.Value(cmd.OutOrStdout(), p)
			}
			return p.print(cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.file, "filename", "f", "", "Manifest of the HostedClusterPackage; - for standard input")
	fs.DurationVar(&o.perCluster, "time-per-cluster", o.perCluster, "How long one package is assumed to be down while it is updated")
	fs.StringArrayVar(&o.fail, "fail", nil, "Assume that this hosted cluster (namespace/name) fails (repeatable)")
	o.AddFlags(fs)
	o.format.AddFlag(cmd)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // only fails for a flag that isn't there
	return cmd
}

// owner is the HostedClusterPackage to plan for: that of the file, with what the cluster knows of it, or that of the arguments.
func (o *planOptions) owner(ctx context.Context, c client.Reader, stdin io.Reader, args []string) (*packagesv1.HostedClusterPackage, error) {
	if (o.file == "") == (len(args) == 0) {
		return nil, errors.New("arguments invalid: give either -f FILE or hostedclusterpackage/NAME")
	}
	if o.file == "" {
		name, err := nameOf(args)
		if err != nil {
			return nil, err
		}
		return get(ctx, c, name)
	}
	wanted, raw, err := readManifest(o.file, stdin)
	if err != nil {
		return nil, err
	}
	live := &packagesv1.HostedClusterPackage{}
	err = c.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if apierrors.IsNotFound(err) {
		return wanted, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading HostedClusterPackage %q: %w", wanted.Name, err)
	}
	return applied(live, raw)
}

func (o *planOptions) preview(ctx context.Context, c client.Reader, owner *packagesv1.HostedClusterPackage, now time.Time) (*preview, error) {
	if o.perCluster < time.Second {
		return nil, fmt.Errorf("--time-per-cluster %s: at least 1s", o.perCluster)
	}
	in, err := hostedclusterpackage.Observe(ctx, c, owner)
	if err != nil {
		return nil, err
	}
	a := rollout.Assumptions{PerCluster: o.perCluster, Fail: map[types.NamespacedName]bool{}}
	known := map[types.NamespacedName]bool{}
	for _, cluster := range in.Clusters {
		known[cluster.Name] = true
	}
	for _, f := range o.fail {
		ns, name, ok := strings.Cut(f, "/")
		key := types.NamespacedName{Namespace: ns, Name: name}
		if !ok || !known[key] {
			return nil, fmt.Errorf("--fail %s: the selector matches no such hosted cluster; write it as namespace/name", f)
		}
		a.Fail[key] = true
	}
	plan := rollout.Make(in, now)
	p := newPreview(owner.Name, o.perCluster, len(in.Clusters), plan, rollout.Predict(in, a, now))
	if s := owner.Spec.Strategy; s.Instant != nil && s.RollingUpgrade != nil {
		p.Warnings = append(p.Warnings, "spec.strategy has both instant and rollingUpgrade: instant wins")
	}
	for _, c := range plan.Status.Conditions {
		if c.Type == packagesv1.ConditionRemovalHeld {
			p.Warnings = append(p.Warnings, c.Message)
		}
	}
	if n := len(plan.Delete); n > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d Packages of hosted clusters that are gone or no longer match the selector are removed", n))
	}
	if _, err := rollout.ParseOptions(owner.Annotations); err != nil {
		p.Warnings = append(p.Warnings, err.Error())
	}
	return p, nil
}
