package kubectlpackage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/cli/rollout"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/scope"
)

// rollout has commands for packages and deployments beside those for HostedClusterPackages, under the same names.
func (o *Options) rollout() *cobra.Command {
	all := []string{packages, clusterPackages, objectDeployments, clusterObjectDeployments, fleetPackages}
	return rollout.Command(o.complete(o.history(), all...), o.complete(o.status(), all...),
		o.complete(o.rolloutPause(true), packages, clusterPackages, fleetPackages), o.complete(o.rolloutPause(false), packages, clusterPackages, fleetPackages))
}

// fleetPackages is the resource of rollouts over hosted clusters.
const fleetPackages = "hostedclusterpackage"

// isFleet tells whether arguments name a HostedClusterPackage.
func isFleet(args []string) bool {
	if len(args) == 0 {
		return false
	}
	kind, _, _ := strings.Cut(args[0], "/")
	return rollout.IsFleet(kind)
}

// beside makes cmd do what fleet does for HostedClusterPackages. It takes all flags of fleet that it has none of its own for.
func beside(cmd, fleet *cobra.Command) *cobra.Command {
	own := cmd.RunE
	cmd.ValidArgsFunction = fleet.ValidArgsFunction
	var onlyFleet []string
	fleet.Flags().VisitAll(func(f *pflag.Flag) {
		if cmd.Flags().Lookup(f.Name) == nil && !connect.IsFlag(f.Name) {
			cmd.Flags().AddFlag(f)
			onlyFleet = append(onlyFleet, f.Name)
		}
	})
	cmd.Args = cobra.RangeArgs(1, 2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !isFleet(args) {
			for _, name := range onlyFleet {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s: only rollouts over hosted clusters have it; leave it out for a package", name)
				}
			}
			return own(cmd, args)
		}
		var err error
		cmd.Flags().Visit(func(f *pflag.Flag) {
			theirs := fleet.Flags().Lookup(f.Name)
			switch {
			case err != nil:
			case theirs == nil && cmd.LocalNonPersistentFlags().Lookup(f.Name) != nil && f.Name != "namespace":
				err = fmt.Errorf("--%s: rollouts over hosted clusters have nothing of the kind", f.Name)
			case theirs != nil && theirs != f:
				err = fleet.Flags().Set(f.Name, f.Value.String())
			}
		})
		if err != nil {
			return err
		}
		fleet.SetContext(cmd.Context())
		fleet.SetOut(cmd.OutOrStdout())
		fleet.SetErr(cmd.ErrOrStderr())
		return fleet.RunE(fleet, args)
	}
	return cmd
}

func (o *Options) history() *cobra.Command {
	var namespace, format string
	var number int64
	cmd := &cobra.Command{
		Use:   "history <resource> <name> | <resource>/<name>",
		Short: "List the revisions of a package or deployment, or the templates of a HostedClusterPackage",
		Example: `  kubectl package rollout history package/my-app -n default
  kubectl package rollout history clusterpackage my-operator --revision 2 -o json
  kubectl package rollout history hostedclusterpackage/addon`,
		RunE: func(cmd *cobra.Command, args []string) error {
			format = strings.ToLower(format)
			if !slices.Contains([]string{"", "json", "yaml"}, format) {
				return fmt.Errorf("invalid output format: %q", format)
			}
			kind, name, c, err := o.target(args, &namespace)
			if err != nil {
				return err
			}
			if singular(kind) == packages && !cmd.Flags().Changed("namespace") {
				if kind, c, err = o.eitherScope(cmd.Context(), c, kind, &namespace, name); err != nil {
					return err
				}
			}
			sets, err := revisions(cmd.Context(), c, kind, namespace, name)
			if err != nil {
				return err
			}
			return printHistory(cmd.OutOrStdout(), sets, format, number)
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", namespaceHelp+"; a package that isn't there is looked for as a ClusterPackage")
	cmd.Flags().StringVarP(&format, "output", "o", "", "Print json or yaml")
	cmd.Flags().Int64Var(&number, "revision", 0, "Print this revision; 0 and less list all")
	return beside(cmd, rollout.History())
}

const namespaceHelp = "Namespace of the package or deployment (default: the one of the kubeconfig's context)"

// eitherScope is where a package is that was named without a namespace: in that of the context, else in the cluster's scope, as scripts name
// ClusterPackages.
func (o *Options) eitherScope(ctx context.Context, c client.Client, kind string, namespace *string, name string) (string, client.Client, error) {
	if err := c.Get(ctx, client.ObjectKey{Namespace: *namespace, Name: name}, &v1alpha1.Package{}); !apierrors.IsNotFound(err) {
		return kind, c, nil // whatever it is, the same request shows it again
	}
	cluster, err := o.client(scope.Cluster)
	if err != nil {
		return kind, c, err
	}
	if err := cluster.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.Package{}); err != nil {
		return kind, c, nil //nolint:nilerr // what is said is that there is no such package
	}
	*namespace = ""
	return clusterPackages, cluster, nil
}

// target is the resource that arguments name. An empty namespace becomes the context's where there is one.
func (o *Options) target(args []string, namespace *string) (kind, name string, c client.Client, err error) {
	if kind, name, err = resource(args); err != nil {
		return "", "", nil, err
	}
	s, _, ok := scopeOf(kind)
	if !ok {
		return "", "", nil, fmt.Errorf("invalid resource type %q: use package, clusterpackage, objectdeployment, clusterobjectdeployment or hostedclusterpackage", kind)
	}
	switch {
	case s.IsCluster():
		*namespace = ""
	case *namespace == "":
		if *namespace, err = o.flags.Namespace(); err != nil {
			return "", "", nil, err
		}
	}
	c, err = o.client(s)
	return kind, name, c, err
}

func printHistory(out io.Writer, sets []v1alpha1.ObjectSet, format string, number int64) error {
	var value any = sets
	if number > 0 {
		i := slices.IndexFunc(sets, func(os v1alpha1.ObjectSet) bool { return os.Spec.Revision == number })
		if i < 0 {
			return errors.New("revision not found")
		}
		value = sets[i]
		if format == "" {
			format = "yaml"
		}
	}
	switch format {
	case "json":
		raw, err := json.MarshalIndent(value, "", "    ")
		if err != nil {
			return fmt.Errorf("encoding the history: %w", err)
		}
		fmt.Fprintln(out, string(raw))
		return nil
	case "yaml":
		raw, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("encoding the history: %w", err)
		}
		fmt.Fprint(out, string(raw))
		return nil
	}
	rows := [][]string{{"REVISION", "SUCCESSFUL", "CHANGE-CAUSE"}}
	for i := range sets {
		rows = append(rows, []string{
			strconv.FormatInt(sets[i].Spec.Revision, 10), strconv.FormatBool(conditions.IsTrue(sets[i].Status.Conditions, v1alpha1.ConditionSucceeded)),
			sets[i].Annotations[v1alpha1.ChangeCauseAnnotation],
		})
	}
	return output.Table(out, rows)
}

func (o *Options) rolloutPause(paused bool) *cobra.Command {
	var namespace, message string
	var dry connect.DryRun
	verb, fleet := "resume", rollout.Resume()
	if paused {
		verb, fleet = "pause", rollout.Pause()
	}
	cmd := &cobra.Command{
		Use:     verb + " <resource> <name> | <resource>/<name>",
		Short:   fleet.Short,
		Example: fmt.Sprintf("  kubectl package rollout %s package/my-app -n default\n  kubectl package rollout %s hostedclusterpackage/addon", verb, verb),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := o.pausable(args, namespace)
			if err != nil {
				return err
			}
			if err := o.setPaused(cmd.Context(), cmd.ErrOrStderr(), of, message, paused, dry); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %sd%s\n", of, verb, dry.Suffix())
			return nil
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", pausableHelp)
	dry.AddFlag(cmd)
	if paused {
		cmd.Flags().StringVarP(&message, "message", "m", "", "Why it is paused")
	}
	return beside(cmd, fleet)
}

// statusTime is how long rollout status waits by default.
const statusTime = 5 * time.Minute

func (o *Options) status() *cobra.Command {
	var namespace string
	var format output.Format
	watch, timeout := true, statusTime
	cmd := &cobra.Command{
		Use:   "status <resource> <name> | <resource>/<name>",
		Short: "Show the progress of a rollout, and wait for its end",
		Example: `  kubectl package rollout status package/my-app -n default
  kubectl package rollout status hostedclusterpackage/addon`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, c, err := o.target(args, &namespace)
			if err != nil {
				return err
			}
			said := cmd.OutOrStdout()
			if format != output.Text {
				said = cmd.ErrOrStderr()
			}
			last, err := o.follow(cmd.Context(), said, c, kind, client.ObjectKey{Namespace: namespace, Name: name}, watch, timeout)
			if format != output.Text && last != nil {
				if failed := format.Value(cmd.OutOrStdout(), last); err == nil {
					err = failed
				}
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", namespaceHelp)
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "Wait until the rollout is over")
	cmd.Flags().DurationVar(&timeout, "timeout", statusTime, "Maximum time to wait, 0 means no limit; a rollout over hosted clusters has no limit unless you set one")
	format.AddFlag(cmd)
	return beside(cmd, rollout.Status())
}

// follow says how far a rollout is until it is over, and returns the status that was last seen: also with an error, nil if none was.
func (o *Options) follow(ctx context.Context, said io.Writer, c client.Client, kind string, key client.ObjectKey, watch bool, timeout time.Duration) (status any, err error) {
	ctx, cancel := connect.WithTimeout(ctx, timeout)
	defer cancel()
	last, patience := "", progress.NewPatience(said, nil)
	look := func(ctx context.Context) (bool, error) {
		now, err := progressOf(ctx, c, kind, key)
		if now.status != nil {
			status = now.status
		}
		if now.line != last && now.line != "" {
			fmt.Fprintln(said, now.line)
			last = now.line
		}
		return now.done || !watch && err == nil, patience.Bear(ctx, err)
	}
	err = wait.PollUntilContextCancel(ctx, o.PollInterval, true, look)
	switch {
	case err == nil || !wait.Interrupted(err):
		return status, err
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return status, fmt.Errorf("%s %s: interrupted before it was rolled out: %w", kind, key.Name, err)
	}
	return status, exit.With(exit.TimedOut, fmt.Errorf("%s %s: not rolled out within %s: %s", kind, key.Name, timeout, cmp.Or(last, "the API server did not answer in this time")))
}

// rolloutState is how far a package or deployment is.
type rolloutState struct {
	line   string
	done   bool
	status any // as the object has it; nil: it could not be read
}

// progressOf says how far a package or deployment is, and whether that is all. With an error that says why it doesn't go on, there is a status, too.
func progressOf(ctx context.Context, c client.Client, kind string, key client.ObjectKey) (rolloutState, error) {
	_, isPackage, _ := scopeOf(kind)
	p, od := &v1alpha1.Package{}, &v1alpha1.ObjectDeployment{}
	var err error
	state, seen := rolloutState{}, observed{kind: kind, name: key.Name, unpacks: isPackage}
	if isPackage {
		err = c.Get(ctx, key, p)
		seen.generation, seen.paused, seen.conditions, seen.revision, state.status = p.Generation, p.Spec.Paused, p.Status.Conditions, p.Status.Revision, p.Status
	} else {
		err = c.Get(ctx, key, od)
		seen.generation, seen.paused, seen.conditions, seen.revision, state.status = od.Generation, od.Spec.Paused, od.Status.Conditions, od.Status.Revision, od.Status
	}
	if err != nil {
		return rolloutState{}, fmt.Errorf("getting %s: %w", kind, err)
	}
	state.line, state.done, err = seen.progress()
	return state, err
}

// observed is what a package's or deployment's rollout is judged by.
type observed struct {
	kind, name           string
	generation, revision int64
	paused               bool // in its spec
	unpacks              bool // it is a package, which comes from an image
	conditions           []metav1.Condition
}

// progress says how far a rollout is, whether that is all, and as an error why it doesn't go on.
func (o observed) progress() (line string, done bool, err error) {
	current := func(condition string) *metav1.Condition {
		return conditions.Current(o.conditions, condition, o.generation)
	}
	if invalid := current(v1alpha1.ConditionInvalid); invalid != nil && invalid.Status == metav1.ConditionTrue {
		return "", false, exit.With(exit.Held, fmt.Errorf("%s %s is invalid: %s: %s", o.kind, o.name, invalid.Reason, invalid.Message))
	}
	paused := current(v1alpha1.ConditionPaused)
	isPaused := paused != nil && paused.Status == metav1.ConditionTrue
	if isPaused && o.paused {
		return "", false, exit.With(exit.Held, fmt.Errorf("held: %s %s is paused; `kubectl package unpause` resumes it", o.kind, o.name))
	}
	progressing, available := current(v1alpha1.ConditionProgressing), current(v1alpha1.ConditionAvailable)
	unpacked := conditions.Get(o.conditions, v1alpha1.ConditionUnpacked)
	switch {
	case unpacked != nil && unpacked.Status == metav1.ConditionFalse:
		return fmt.Sprintf("waiting for the image: %s", unpacked.Message), false, nil
	case isPaused:
		// The pause was ended in the spec, and the newest revision follows.
		return "waiting until the pause is over", false, nil
	case o.unpacks && (progressing != nil || available != nil) && current(v1alpha1.ConditionUnpacked) == nil:
		// The rest is about what was unpacked before.
		return "waiting for the image to be unpacked", false, nil
	case progressing == nil || available == nil:
		return "waiting for the rollout to begin", false, nil
	case progressing.Status == metav1.ConditionFalse && available.Status == metav1.ConditionTrue:
		return fmt.Sprintf("%s %s successfully rolled out, revision %d", o.kind, o.name, o.revision), true, nil
	default:
		return fmt.Sprintf("revision %d: %s", o.revision, progressing.Message), false, nil
	}
}
