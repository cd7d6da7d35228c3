package capi

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/hostedcluster/migration"
	"hcp.internal/platform/internal/kube/conditions"
)

// Status is what migrate status says of a hosted cluster.
type Status struct {
	HostedCluster string `json:"hostedCluster"` // namespace/name
	Types         string `json:"types"`         // Private or Standard
	// State is one of the States; Phase is set while Moving.
	State   string `json:"state"`
	Phase   string `json:"phase,omitempty"`
	Message string `json:"message,omitempty"`

	failed bool // its move failed, and wasn't only taken back because somebody asked for that
}

// States of a move.
const (
	stateNotAsked   = "NotAsked"
	stateAsked      = "Asked"  // by somebody, and nothing was said of it yet
	stateQueued     = "Queued" // it begins by itself when it is its turn, or the time of day
	stateHeld       = "Held"   // it doesn't begin before somebody does something
	stateMoving     = "Moving"
	stateMoved      = "Moved"
	stateRolledBack = "RolledBack"
	stateByHand     = "LockedByHand"
	stateForeign    = "Foreign" // of an operator with another scope
)

// fleet is what decides about the move of a hosted cluster besides itself.
type fleet struct {
	settings migration.Settings
	wrong    error    // settings can't be read, so nothing begins
	failed   []string // hosted clusters whose move failed, namespace/name
}

func fleetOf(state map[string]string, all []hyperv1.HostedCluster) fleet {
	var f fleet
	f.settings, f.wrong = migration.ParseSettings(state)
	for i := range all {
		if migration.Failed(&all[i]) {
			f.failed = append(f.failed, all[i].Namespace+"/"+all[i].Name)
		}
	}
	return f
}

// wanted tells whether the operator is to move a hosted cluster, and whether somebody asked for that one. It goes by the operator's rules.
func (f fleet) wanted(hc *hyperv1.HostedCluster) (wanted, byHand bool) {
	a := hc.Annotations
	back := a[hyperv1.PrivateCAPIRollbackAnnotation] == "true"
	switch {
	case hc.DeletionTimestamp != nil:
		return false, false
	case a[hyperv1.PrivateCAPITypesAnnotation] == "true":
		return back, back
	case back || a[hyperv1.PrivateCAPIMigrationFailedAnnotation] != "":
		return false, false
	case a[hyperv1.PrivateCAPIMigrateAnnotation] == "true":
		return true, true
	}
	return f.settings.Automatic && a[hyperv1.HostedClusterScopeAnnotation] == hyperv1.LegacyScope && a[hyperv1.PrivateCAPIHoldAnnotation] != "true", false
}

// stops says what keeps a wanted move from beginning until somebody does something; empty: nothing. said is the message of its condition, if that is
// about a move which is held.
func (f fleet) stops(hc *hyperv1.HostedCluster, byHand bool, said string) string {
	switch {
	case hc.Annotations[hyperv1.PrivateCAPIHoldAnnotation] == "true":
		return "annotation " + hyperv1.PrivateCAPIHoldAnnotation + " prevents it"
	case f.wrong != nil:
		return fmt.Sprintf("ConfigMap %s: %v", migration.StateName, f.wrong)
	case f.settings.Paused:
		return "all moves are paused: `hypershift capi migrate --resume` ends that"
	case !byHand && len(f.failed) > 0:
		return fmt.Sprintf("a failed move stops the others: look at %s, then ask again by `hypershift capi migrate NAME`", strings.Join(f.failed, ", "))
	case strings.HasPrefix(said, migration.Refused):
		return said
	}
	return ""
}

func statusOf(hc *hyperv1.HostedCluster, f fleet) Status {
	a := hc.Annotations
	s := Status{HostedCluster: hc.Namespace + "/" + hc.Name, Types: "Standard", State: stateNotAsked, failed: migration.Failed(hc)}
	if a[hyperv1.PrivateCAPITypesAnnotation] == "true" {
		s.Types = "Private"
	}
	c := conditions.Get(hc.Status.Conditions, hyperv1.PrivateCAPIMigrationProgressing)
	held := ""
	if c != nil {
		s.Message = c.Message
		if c.Reason == hyperv1.MigrationHeldReason {
			held = c.Message
		}
	}
	wanted, byHand := f.wanted(hc)
	stops := ""
	if wanted {
		stops = f.stops(hc, byHand, held)
	}
	scope := a[hyperv1.HostedClusterScopeAnnotation]
	switch {
	case scope != "" && scope != hyperv1.LegacyScope:
		s.State = stateForeign
	case a[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true" && a[hyperv1.PrivateCAPIMigrationLockAnnotation] == "":
		s.State = stateByHand
	case a[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true":
		s.State = stateMoving
		if c != nil {
			s.Phase = c.Reason
		}
	case stops != "":
		s.State, s.Message = stateHeld, stops
	case wanted && (held != "" || !byHand):
		s.State = stateQueued
	case wanted:
		s.State = stateAsked
	case s.Types == "Standard" && a[hyperv1.PrivateCAPIMigrationFailedAnnotation] != "":
		s.State = stateRolledBack
	case c != nil && c.Reason == hyperv1.MigrationCompletedReason:
		s.State = stateMoved
	}
	return s
}

// goesOn tells that a move is under way, or begins by itself.
func (s Status) goesOn() bool {
	return s.State == stateMoving || s.State == stateAsked || s.State == stateQueued
}

func statusCommand(o *migrateOptions) *cobra.Command {
	format := output.Format("")
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show where hosted clusters store their Cluster API objects, and the progress of migrations",
		Long: `Show for each hosted cluster, or for one, whether it has standard or private types, and the progress of its migration. With --watch, print
it again whenever something changes, until no migration is in progress or queued. Exit code with --watch: 0 nothing is left to do, 2 a
migration was rolled back or doesn't start before somebody does something; its message says what.`,
		Example: `  hypershift capi migrate status
  hypershift capi migrate status demo -o json
  hypershift capi migrate status --watch`,
		Args: cobra.MaximumNArgs(1), SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.connect.Client()
			if err != nil {
				return err
			}
			return o.follow(cmd.Context(), c, cmd.OutOrStdout(), cmd.ErrOrStderr(), format, strings.Join(args, ""))
		},
	}
	cmd.ValidArgsFunction = connect.CompleteArgument(&o.connect, hyperv1.GroupVersion.WithKind("HostedClusterList"), &o.namespace, true)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Keep printing until no migration is in progress or queued")
	format.AddFlag(cmd)
	return cmd
}

const (
	// lookEvery is how often --watch looks.
	lookEvery = 2 * time.Second
	// heldLooks is after how many looks at the same objections --watch ends. The operator looks at them again every 15 seconds, and what it said before
	// somebody removed the cause is no result.
	heldLooks = 20
)

// follow prints the states, with --watch until none of them changes by itself any more. What is no state is said on the side.
func (o *migrateOptions) follow(ctx context.Context, c client.Client, out, said io.Writer, format output.Format, name string) error {
	var last []Status
	same, patience := 0, progress.NewPatience(said, nil)
	return wait.PollUntilContextCancel(ctx, cmp.Or(o.every, lookEvery), true, func(ctx context.Context) (bool, error) {
		list, err := o.statuses(ctx, c, name)
		if bad := patience.Bear(ctx, err); bad != nil || err != nil {
			return false, bad
		}
		same++
		if last == nil || !slices.Equal(list, last) {
			if err := printStatus(out, format, list); err != nil {
				return false, err
			}
			last, same = list, 0
		}
		if !o.watch {
			return true, nil
		}
		return ended(list, same)
	})
}

// ended tells whether --watch is over, and as an error which moves are stopped.
func ended(list []Status, same int) (bool, error) {
	var stopped []string
	for _, s := range list {
		switch {
		case s.goesOn():
			return false, nil
		case s.State == stateHeld && strings.HasPrefix(s.Message, migration.Refused) && same < heldLooks:
			return false, nil
		case s.State == stateHeld || s.State == stateRolledBack && s.failed:
			stopped = append(stopped, s.HostedCluster+" ("+s.State+")")
		}
	}
	if len(stopped) == 0 {
		return true, nil
	}
	return false, exit.With(exit.Held, fmt.Errorf("these moves don't go on before somebody does something: %s", strings.Join(stopped, ", ")))
}

// statuses are those of the hosted cluster of a name, or of all.
func (o *migrateOptions) statuses(ctx context.Context, c client.Client, name string) ([]Status, error) {
	shown, err := o.clusters(ctx, c, name)
	if err != nil {
		return nil, err
	}
	state := &corev1.ConfigMap{}
	err = c.Get(ctx, client.ObjectKey{Namespace: o.operator, Name: migration.StateName}, state)
	if apierrors.IsForbidden(err) && !o.watch {
		err = nil // what is asked for on HostedClusters is known
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("finding out which hosted clusters are to be moved: reading ConfigMap %s/%s: %w", o.operator, migration.StateName, err)
	}
	all := shown
	if name != "" {
		// A failed move of another one may stop this one. Who may not see that sees what the operator says of this one.
		if list, err := o.clusters(ctx, c, ""); err == nil {
			all = list
		} else if !apierrors.IsForbidden(err) {
			return nil, err
		}
	}
	f := fleetOf(state.Annotations, all)
	list := []Status{}
	for i := range shown {
		list = append(list, statusOf(&shown[i], f))
	}
	return list, nil
}

func printStatus(out io.Writer, format output.Format, list []Status) error {
	if format != output.Text {
		return format.Value(out, list)
	}
	rows := [][]string{{"HOSTEDCLUSTER", "TYPES", "STATE", "PHASE", "MESSAGE"}}
	for _, s := range list {
		rows = append(rows, []string{s.HostedCluster, s.Types, s.State, s.Phase, s.Message})
	}
	return output.Table(out, rows)
}
