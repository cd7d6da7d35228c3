package rollout

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
)

// Fleet is the world that a rollout acts on.
type Fleet interface {
	// Look reads the Packages in some namespaces past any cache. Where there is none, the answer has none.
	Look(ctx context.Context, namespaces []string) (map[string]Package, error)
	// Record stores status.processing; of the rest of status what is known to be right before the plan is carried out. It fails when the
	// HostedClusterPackage isn't the one that was observed any more, also when there is nothing to change.
	Record(ctx context.Context, status packagesv1.HostedClusterPackageStatus) error
	// Apply makes or changes Packages, in any order or at the same time. A failure of one keeps no other from being tried; there is an error, or nil, for
	// each of changes.
	Apply(ctx context.Context, changes []Change) []error
	// Delete removes a Package, if it still has that UID, and if a look past any cache finds no hosted cluster that it belongs to.
	Delete(ctx context.Context, p Package) error
	// Report stores status, unless it is stored already. It fails as Record does.
	Report(ctx context.Context, status packagesv1.HostedClusterPackageStatus) error
}

// Step makes a plan and carries it out. Whatever happens in between, the next Step of whoever comes goes on: a Package is on record before it
// is taken down, and stays on record until it was seen up.
//
// An error of one Package keeps nobody else from being served. What could not be done is in the joined error, and the plan is returned in
// any case.
func Step(ctx context.Context, fleet Fleet, in Observed, now time.Time) (Plan, error) {
	plan, in, err := confirmed(ctx, fleet, in, now)
	if err != nil {
		return plan, err
	}
	if plan.Starts || len(plan.Apply)+len(plan.Create)+len(plan.Relabel) > 0 {
		// Nothing is on record yet that starts now; and nobody may be given a template that isn't the newest.
		if err := fleet.Record(ctx, plan.Status); err != nil {
			return plan, err
		}
	}
	var errs []error
	for _, p := range plan.Delete {
		errs = append(errs, fleet.Delete(ctx, p))
	}
	status := plan.Status
	if changes := slices.Concat(plan.Create, plan.Apply); len(changes) > 0 {
		results := fleet.Apply(ctx, changes)
		errs = append(errs, results...)
		status = told(in, plan, changes, results, now)
	}
	// What could not be written is said, whatever it was: a status that stands still tells nobody anything.
	errs = append(errs, fleet.Report(ctx, status))
	if err := errors.Join(errs...); err != nil || len(plan.Relabel) == 0 {
		return plan, err
	}
	return plan, errors.Join(fleet.Apply(ctx, plan.Relabel)...)
}

// told is the status of a plan with what came of its writes.
func told(in Observed, plan Plan, changes []Change, results []error, now time.Time) packagesv1.HostedClusterPackageStatus {
	refused := maps.Clone(in.Refused)
	for i, err := range results {
		if err == nil {
			continue
		}
		if refused == nil {
			refused = map[string]string{}
		}
		refused[changes[i].Namespace] = Brief(err)
	}
	if len(refused) == len(in.Refused) {
		return plan.Status
	}
	in.Refused = refused
	status := Make(in, now).Status
	// What is on record stays there until it was looked at.
	status.Processing = plan.Processing
	return status
}

// brief is how many characters of an error a message has room for.
const brief = 200

// Brief is an error as a message about several clusters tells it.
func Brief(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner // what was being done, and to whom, the message says itself
	}
	return clip.Over(strings.Join(strings.Fields(err.Error()), " "), brief, "…")
}

// confirmed is a plan that rests on no cache where a cache could do harm: it frees no slot of a Package that merely looks up, makes none that
// merely looks missing, for it might be there and be changed, and changes none without a slot that merely looks down or up to date.
//
// It returns what that plan rests on, too.
func confirmed(ctx context.Context, fleet Fleet, in Observed, now time.Time) (Plan, Observed, error) {
	seen := map[string]bool{}
	for {
		plan := Make(in, now)
		var doubtful []string
		for _, ref := range plan.Dropped {
			// A cache that is ahead of all that we did to it can't show a Package as it was before.
			if p, ok := in.Packages[ref.Namespace]; !ok || p.UID != ref.UID || !p.Fresh {
				doubtful = append(doubtful, ref.Namespace)
			}
		}
		for _, c := range plan.Create {
			doubtful = append(doubtful, c.Namespace)
		}
		for _, c := range plan.Apply {
			if c.Free {
				doubtful = append(doubtful, c.Namespace)
			}
		}
		for _, c := range plan.Relabel {
			doubtful = append(doubtful, c.Namespace)
		}
		doubtful = slices.DeleteFunc(doubtful, func(ns string) bool { return seen[ns] })
		if len(doubtful) == 0 {
			return plan, in, nil
		}
		// Each round looks at Packages that no round before has looked at, so there is a last one.
		found, err := fleet.Look(ctx, doubtful)
		if err != nil {
			return plan, in, err
		}
		if len(seen) == 0 {
			in.Packages = maps.Clone(in.Packages) // the caller's
		}
		for _, ns := range doubtful {
			seen[ns] = true
			delete(in.Packages, ns)
		}
		maps.Copy(in.Packages, found)
	}
}
