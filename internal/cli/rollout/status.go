package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/conditions"
)

// Status is "rollout status".
func Status() *cobra.Command {
	var flags connect.Flags
	var format output.Format
	watch, timeout, hold := true, time.Duration(0), holdAfter
	cmd := &cobra.Command{
		Use:   "status hostedclusterpackage/NAME",
		Short: "Follow a rollout until it ends",
		Long: `Follow a rollout until it ends, or until it doesn't continue by itself: because it is paused, because what it installs is invalid, or
because nothing has changed for the time of --hold-after, beyond what its annotations say about soaking and deadlines.

Exit codes: 0 complete; 2 held, someone has to act first; 4 the HostedClusterPackage doesn't exist, or was deleted; 124 --timeout has
passed. With -o, it waits and ends in the same way: it says on standard error how far the rollout is, and prints the status once, at the end.`,
		Example: `  kubectl package rollout status hostedclusterpackage/addon --timeout 1h
  kubectl package rollout status hostedclusterpackage/addon --watch=false`,
	}
	prepare(cmd, &flags, func(cmd *cobra.Command, c client.Client, owner *packagesv1.HostedClusterPackage) error {
		if !watch && format == output.Text {
			return printStatus(cmd.OutOrStdout(), owner, inFlight(cmd.Context(), c, owner))
		}
		last := owner
		var err error
		if watch {
			ctx, cancel := connect.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			last, err = follow(ctx, c, owner, hold, cmd.ErrOrStderr())
		}
		// The format says how the result is printed: the command has waited as without one, and ends with the same code.
		if format != output.Text && last != nil {
			if failed := format.Value(cmd.OutOrStdout(), last.Status); err == nil {
				err = failed
			}
		}
		if err != nil || !watch {
			return err
		}
		out := cmd.OutOrStdout()
		if format != output.Text {
			out = cmd.ErrOrStderr()
		}
		_, text := describe(last)
		fmt.Fprintln(out, "complete: "+text)
		return nil
	})
	cmd.Flags().BoolVarP(&watch, "watch", "w", watch, "Wait until the rollout ends")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "How long to wait; 0 means no limit")
	cmd.Flags().DurationVar(&hold, "hold-after", hold, "How long nothing may change before the rollout counts as held; 0 means no limit")
	format.AddFlag(cmd)
	return cmd
}

// follow waits until a rollout is complete, and returns it as it was last seen: also with an error, unless it is gone.
func follow(ctx context.Context, c client.Client, owner *packagesv1.HostedClusterPackage, hold time.Duration, said io.Writer) (*packagesv1.HostedClusterPackage, error) {
	last := owner
	watched := watcher{patience: hold}
	err := progress.New(said, nil).Until(ctx, "rollout of "+owner.Name, func(ctx context.Context) (progress.State, error) {
		now, err := get(ctx, c, owner.Name)
		if err == nil && now.UID != owner.UID {
			err = exit.With(exit.NotFound, fmt.Errorf("HostedClusterPackage %q was deleted and created again", owner.Name))
		}
		if exit.Code(err) == exit.NotFound {
			last = nil
			return progress.State{}, progress.Terminal(err)
		}
		if err != nil {
			return progress.State{}, err
		}
		last = now
		done, text := describe(now)
		if done {
			return progress.Done(), nil
		}
		if held := watched.look(now, packagesInFlight(ctx, c, now), time.Now()); held != "" {
			return progress.State{}, progress.Terminal(exit.With(exit.Held, errors.New("held: "+held)))
		}
		return progress.Waiting("%s", strings.TrimSuffix(text, ".")), nil
	})
	return last, err
}

// describe says in a line how far a rollout is, and whether it is complete.
func describe(p *packagesv1.HostedClusterPackage) (bool, string) {
	s := p.Status
	if int64(s.ObservedGeneration) < p.Generation {
		return false, "the controller has not seen the newest template yet, or could not apply it; `kubectl events --for hostedclusterpackage/" + p.Name + "` tells"
	}
	text := fmt.Sprintf("%d/%d updated, %d/%d available, %d/%d progressed.",
		s.UpdatedPackages, s.TotalPackages, s.AvailablePackages, s.TotalPackages, s.ProgressedPackages, s.TotalPackages)
	if more := explanation(p); more != "" {
		text += " " + more
	}
	return conditions.IsFalse(s.Conditions, packagesv1.ConditionProgressing), text
}

// explanation is what the controller says after the sentence with the counts.
func explanation(p *packagesv1.HostedClusterPackage) string {
	c := conditions.Get(p.Status.Conditions, packagesv1.ConditionProgressing)
	if c == nil {
		return ""
	}
	_, more, _ := strings.Cut(c.Message, "packages progressed.")
	return strings.TrimSpace(more)
}

// flight is a Package that is being changed.
type flight struct {
	name, why string
}

// shownFlights bounds how many Packages are read for a look at the status.
const shownFlights = 10

// inFlight reads what the Packages say that are being changed. One that can't be read says so.
func inFlight(ctx context.Context, c client.Reader, owner *packagesv1.HostedClusterPackage) []flight {
	var out []flight
	for _, ref := range owner.Status.Processing[:min(len(owner.Status.Processing), shownFlights)] {
		p, f := &packagesv1.Package{}, flight{name: ref.Namespace + "/" + ref.Name}
		if err := c.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, p); err != nil {
			f.why = err.Error()
		} else {
			f.why = why(p)
		}
		out = append(out, f)
	}
	if more := len(owner.Status.Processing) - len(out); more > 0 {
		out = append(out, flight{name: fmt.Sprintf("and %d more", more), why: "kubectl get packages -A shows all"})
	}
	return out
}

// why is what a Package says about not being up.
func why(p *packagesv1.Package) string {
	for _, look := range []struct {
		kind string
		bad  metav1.ConditionStatus
	}{
		{packagesv1.ConditionInvalid, metav1.ConditionTrue}, {packagesv1.ConditionUnpacked, metav1.ConditionFalse},
		{packagesv1.ConditionProgressing, metav1.ConditionTrue}, {packagesv1.ConditionAvailable, metav1.ConditionFalse},
	} {
		if c := conditions.Current(p.Status.Conditions, look.kind, p.Generation); c != nil && c.Status == look.bad {
			return clip.Line(cmp.Or(c.Message, c.Reason))
		}
	}
	return "it has not said anything about its newest change yet"
}

// printStatus is for people who look once: groups in the order of the rollout, what is in flight and why, and a sentence a line.
func printStatus(w io.Writer, p *packagesv1.HostedClusterPackage, flights []flight) error {
	done, text := describe(p)
	var b strings.Builder
	if s := p.Status; int64(s.ObservedGeneration) >= p.Generation {
		text = fmt.Sprintf("%d of %d updated, %d available, %d progressed.", s.UpdatedPackages, s.TotalPackages, s.AvailablePackages, s.ProgressedPackages)
	}
	if done {
		text = "complete: " + text
	}
	b.WriteString(text + "\n")
	if len(p.Status.Partitions) > 0 {
		rows := [][]string{{"GROUP", "UPDATED", "AVAILABLE", "PROGRESSED"}}
		for _, part := range p.Status.Partitions {
			of := func(n int32) string { return fmt.Sprintf("%d/%d", n, part.TotalPackages) }
			rows = append(rows, []string{part.Name, of(part.UpdatedPackages), of(part.AvailablePackages), of(part.ProgressedPackages)})
		}
		b.WriteString("\n")
		if err := output.Table(&b, rows); err != nil {
			return err
		}
		b.WriteString("\n")
	}
	if len(flights) > 0 {
		rows := [][]string{{"IN FLIGHT", "WHAT IT SAYS"}}
		for _, f := range flights {
			rows = append(rows, []string{f.name, f.why})
		}
		if err := output.Table(&b, rows); err != nil {
			return err
		}
		b.WriteString("\n")
	}
	if more := explanation(p); more != "" {
		b.WriteString(strings.ReplaceAll(more, ". ", ".\n") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
