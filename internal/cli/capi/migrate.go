package capi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/hostedcluster/migration"
	"hcp.internal/platform/internal/kube/patch"
	pages "hcp.internal/platform/internal/kube/read"
)

// ExitRefused is the exit code of migrate --dry-run if something speaks against a move.
const ExitRefused = 2

// migrateOptions are flags of migrate and its commands.
type migrateOptions struct {
	connect                                     connect.Flags
	namespace, operator                         string
	dryRun, rollback, all, pause, resume, watch bool
	format                                      output.Format
	every                                       time.Duration // how often status --watch looks; shorter in tests
}

func migrateCommand() *cobra.Command {
	o := &migrateOptions{namespace: "clusters", operator: "hypershift"}
	cmd := &cobra.Command{
		Use:   "migrate [flags] [NAME]",
		Short: "Migrate hosted clusters from standard Cluster API types to private ones, and back",
		Long: `Request that the operator migrates the Cluster API objects of a hosted cluster to HyperShift's own groups, or with --rollback back to the
standard ones. The operator then migrates one hosted cluster after another, while all machines keep running; nothing scales or heals for
about a minute.

--dry-run checks what would be migrated and what prevents it, for one hosted cluster or all of them, and changes nothing. Exit code: 0
nothing prevents it, 2 something does, 1 that could not be determined.`,
		Example: `  hypershift capi migrate --dry-run        # of all hosted clusters
  hypershift capi migrate demo
  hypershift capi migrate --all            # one after the other; a failure stops the rest
  hypershift capi migrate --pause          # begin no more
  hypershift capi migrate --rollback demo
  hypershift capi migrate status --watch`,
		Args: cobra.MaximumNArgs(1), SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	fs := cmd.PersistentFlags()
	fs.StringVarP(&o.namespace, "namespace", "n", o.namespace, "Namespace of the HostedCluster")
	fs.StringVar(&o.operator, "operator-namespace", o.operator, "Namespace that the operator was installed in")
	o.connect.AddFlags(fs)
	fs = cmd.Flags()
	fs.BoolVar(&o.dryRun, "dry-run", o.dryRun, "Only show what would be migrated, and what prevents it")
	fs.BoolVar(&o.rollback, "rollback", o.rollback, "Migrate back to standard types")
	fs.BoolVar(&o.all, "all", o.all, "Migrate all hosted clusters, including future ones")
	fs.BoolVar(&o.pause, "pause", o.pause, "Start no migration until --resume; one that has started continues to its end")
	fs.BoolVar(&o.resume, "resume", o.resume, "End --pause")
	o.format.AddFlag(cmd)
	connect.CompleteNamespaces(cmd, &o.connect, "namespace")
	cmd.ValidArgsFunction = connect.CompleteArgument(&o.connect, hyperv1.GroupVersion.WithKind("HostedClusterList"), &o.namespace, true)
	cmd.MarkFlagsMutuallyExclusive("all", "pause", "resume", "rollback")
	cmd.AddCommand(statusCommand(o))
	return cmd
}

func (o *migrateOptions) run(cmd *cobra.Command, args []string) error {
	c, err := o.connect.Client()
	if err != nil {
		return err
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	switch {
	case o.dryRun:
		return o.look(ctx, c, out, name)
	case name == "" && o.all:
		return o.settings(ctx, c, out, map[string]*string{migration.ModeAnnotation: ptr.To(migration.ModeAutomatic)}, "all hosted clusters will be moved, one after the other")
	case name == "" && o.pause:
		return o.settings(ctx, c, out, map[string]*string{migration.PausedAnnotation: ptr.To("true")}, "no move will begin")
	case name == "" && o.resume:
		return o.settings(ctx, c, out, map[string]*string{migration.PausedAnnotation: nil}, "moves may begin again")
	case name == "":
		return errors.New("name a hosted cluster, or say --all; `hypershift capi migrate status` lists them")
	case o.all || o.pause || o.resume:
		return errors.New("--all, --pause and --resume are about all hosted clusters: leave the name out")
	}
	hc := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: name}, hc); err != nil {
		return fmt.Errorf("reading HostedCluster %s/%s: %w", o.namespace, name, err)
	}
	private := hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true"
	key, where := hyperv1.PrivateCAPIMigrateAnnotation, "private"
	if o.rollback {
		key, where = hyperv1.PrivateCAPIRollbackAnnotation, "standard"
	}
	moving := hc.Annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true"
	if private != o.rollback && !moving {
		fmt.Fprintf(out, "HostedCluster %s/%s has %s types already\n", o.namespace, name, where)
		return nil
	}
	change := map[string]*string{key: ptr.To("true")}
	if !o.rollback {
		change[hyperv1.PrivateCAPIMigrationFailedAnnotation] = nil // whoever asks again has looked at why
	}
	if err := c.Patch(ctx, hc, patch.Metadata{Annotations: change}.Patch()); err != nil {
		return fmt.Errorf("asking for the move of HostedCluster %s/%s: %w", o.namespace, name, err)
	}
	fmt.Fprintf(out, "asked for the move of HostedCluster %s/%s to %s types: see hypershift capi migrate status --watch\n", o.namespace, name, where)
	return nil
}

// settings changes annotations of the ConfigMap that says which hosted clusters are moved.
func (o *migrateOptions) settings(ctx context.Context, c client.Client, out io.Writer, change map[string]*string, done string) error {
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = o.operator, migration.StateName
	err := c.Patch(ctx, cm, patch.Metadata{Annotations: change}.Patch())
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no ConfigMap %s/%s: install with --private-capi-types, or name the operator's namespace by --operator-namespace", o.operator, migration.StateName)
	}
	if err != nil {
		return fmt.Errorf("changing ConfigMap %s/%s: %w", o.operator, migration.StateName, err)
	}
	fmt.Fprintln(out, done)
	return nil
}

// look prints what would be moved.
func (o *migrateOptions) look(ctx context.Context, c client.Client, out io.Writer, name string) error {
	cfg, err := o.connect.RESTConfig()
	if err != nil {
		return err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return err
	}
	clusters, err := o.clusters(ctx, c, name)
	if err != nil {
		return err
	}
	m := &migration.Controller{Direct: c, Discovery: disco, Clock: clock.RealClock{}, Namespace: o.operator}
	direction := migration.Forward
	if o.rollback {
		direction = migration.Reverse
	}
	reports, refused := []migration.Report{}, 0
	for i := range clusters {
		if hc := &clusters[i]; name != "" || (hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true") == o.rollback {
			r, err := m.Preflight(ctx, hc, direction)
			if err != nil {
				return fmt.Errorf("looking at HostedCluster %s/%s: %w", hc.Namespace, hc.Name, err)
			}
			reports = append(reports, r)
			refused += min(len(r.Refusals), 1)
		}
	}
	if o.format != output.Text {
		err = o.format.Value(out, reports)
	} else {
		printReports(out, reports)
	}
	if err != nil || refused == 0 {
		return err
	}
	return &ExitError{Code: ExitRefused, Err: fmt.Errorf("%d of %d hosted clusters can't be moved now", refused, len(reports))}
}

func printReports(out io.Writer, reports []migration.Report) {
	if len(reports) == 0 {
		fmt.Fprintln(out, "there is nothing to move")
	}
	for _, r := range reports {
		fmt.Fprintf(out, "%s: %d objects of %d machines, %d objects that get new owners\n", r.HostedCluster, r.Objects, r.Machines, r.Dependents)
		for _, refusal := range r.Refusals {
			fmt.Fprintf(out, "  %s: %s\n    %s\n", refusal.Reason, refusal.Message, refusal.Remedy)
		}
		if len(r.Refusals) == 0 {
			fmt.Fprintln(out, "  nothing speaks against it; the operator also looks at its own rights and at the image of the control-plane-operator")
		}
	}
}

// pageSize is how many hosted clusters are read at once.
const pageSize = 500

func (o *migrateOptions) clusters(ctx context.Context, c client.Client, name string) ([]hyperv1.HostedCluster, error) {
	if name != "" {
		hc := &hyperv1.HostedCluster{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: name}, hc); err != nil {
			return nil, fmt.Errorf("reading HostedCluster %s/%s: %w", o.namespace, name, err)
		}
		return []hyperv1.HostedCluster{*hc}, nil
	}
	var all []hyperv1.HostedCluster
	list := &hyperv1.HostedClusterList{}
	for err := range pages.Pages(ctx, c, list, pageSize) {
		if err != nil {
			return nil, fmt.Errorf("listing HostedClusters: %w", err)
		}
		all = append(all, list.Items...)
	}
	slices.SortFunc(all, func(a, b hyperv1.HostedCluster) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return all, nil
}
