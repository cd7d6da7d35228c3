package hostedclusterpackage

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/packages/control/metrics"
	"hcp.internal/platform/internal/packages/control/rollout"
	engine "hcp.internal/platform/internal/packages/engine/status"
)

// Record implements rollout.Fleet.
func (f *fleet) Record(ctx context.Context, status packagesv1.HostedClusterPackageStatus) error {
	if !slices.Equal(status.Processing, f.owner.Status.Processing) {
		before := f.owner.ResourceVersion
		after := f.owner.DeepCopy()
		if f.owner.Status.ObservedGeneration == status.ObservedGeneration {
			// One write instead of two. That a generation was observed is only told once a pass over it came through.
			f.fill(after, status)
		}
		after.Status.Processing = status.Processing
		if err := f.write(ctx, after); err != nil {
			return err
		}
		if f.owner.ResourceVersion == before {
			return errNotTheNewest // it is gone, which is no error of a patch
		}
		return nil
	}
	live := &packagesv1.HostedClusterPackage{}
	if err := f.live.Get(ctx, client.ObjectKeyFromObject(f.owner), live); err != nil {
		return err
	}
	if live.UID != f.owner.UID || live.Generation != f.owner.Generation || !live.DeletionTimestamp.IsZero() ||
		!slices.Equal(live.Status.Processing, f.owner.Status.Processing) {
		return errNotTheNewest
	}
	return nil
}

func (f *fleet) write(ctx context.Context, after *packagesv1.HostedClusterPackage) error {
	if err := patch.Status(ctx, f.client, f.owner, after); err != nil {
		if apierrors.IsConflict(err) {
			return errNotTheNewest
		}
		return err
	}
	f.owner = after
	return nil
}

// Report implements rollout.Fleet.
func (f *fleet) Report(ctx context.Context, status packagesv1.HostedClusterPackageStatus) error {
	after := f.owner.DeepCopy()
	f.fill(after, status)
	return f.write(ctx, after)
}

// published are the conditions that are always there.
var published = []string{packagesv1.ConditionAvailable, packagesv1.ConditionProgressing, packagesv1.ConditionHasPausedPackage}

func (f *fleet) fill(after *packagesv1.HostedClusterPackage, status packagesv1.HostedClusterPackageStatus) {
	have := after.Status.Conditions
	if len(status.Conditions) == len(published) {
		conditions.Remove(&have, packagesv1.ConditionRemovalHeld)
	}
	conditions.Set(&have, f.clock.Now(), status.Conditions...)
	engine.RollUp(&have, f.clock.Now(), after.Generation)
	status.Conditions = have
	after.Status = status
}

// warn tells of what is asked for and can't be meant, once. Annotations have no generation, so that it goes by what was told.
func (r *Reconciler) warn(owner *packagesv1.HostedClusterPackage) {
	both, wrong := "", ""
	if s := owner.Spec.Strategy; s.Instant != nil && s.RollingUpgrade != nil {
		both = "spec.strategy has both instant and rollingUpgrade: instant wins, and all packages change at once; remove spec.strategy.instant to roll"
	}
	if _, err := rollout.ParseOptions(owner.Annotations); err != nil {
		wrong = err.Error()
	}
	if r.memory.tell(owner, "StrategyIsInstant", both) {
		r.Events.Eventf(owner, nil, corev1.EventTypeWarning, "StrategyIsInstant", "Reconcile", "%s", both)
	}
	if r.memory.tell(owner, "InvalidAnnotation", wrong) {
		r.Events.Eventf(owner, nil, corev1.EventTypeWarning, "InvalidAnnotation", "Reconcile", "%.900s", wrong)
	}
}

// report tells of what people want to hear about: returns to an older version, and what waits for them.
func (r *Reconciler) report(owner *packagesv1.HostedClusterPackage, plan rollout.Plan) {
	held := conditions.Get(plan.Status.Conditions, packagesv1.ConditionRemovalHeld)
	if held != nil && !conditions.IsTrue(owner.Status.Conditions, packagesv1.ConditionRemovalHeld) {
		r.Events.Eventf(owner, nil, corev1.EventTypeWarning, packagesv1.ConditionRemovalHeld, "Reconcile", "%.900s", held.Message)
	}
	for _, c := range plan.Apply {
		if c.Version == rollout.LastGood {
			r.Events.Eventf(owner, nil, corev1.EventTypeWarning, "PackageReturned", "Return",
				"hosted cluster %s returns to the last good version", c.Cluster)
		}
	}
}

// record tells metrics how far the rollout is. A plan without a status is of a step that was not made.
func (r *Reconciler) record(owner *packagesv1.HostedClusterPackage, plan rollout.Plan, paused bool) {
	if r.Metrics == nil || plan.Status.Conditions == nil {
		return
	}
	counts := plan.Status.HostedClusterPackageCountsStatus
	state := metrics.Rollout{Total: counts.TotalPackages, Available: counts.AvailablePackages, Progressed: counts.ProgressedPackages, Updated: counts.UpdatedPackages,
		Unavailable: counts.UnavailablePackages, Budget: plan.Budget, Used: plan.Used, Now: r.Clock.Now()}
	if plan.Budget == rollout.Unlimited {
		state.Budget = -1
	}
	state.Groups, state.GroupsDone = groups(plan.Decisions)
	switch {
	case !conditions.IsTrue(plan.Status.Conditions, packagesv1.ConditionProgressing):
		state.State = metrics.RolloutComplete
	case paused, plan.Sleeps: // there is nothing to do for whoever is called because a rollout stands still
		state.State = metrics.RolloutPaused
	case plan.Soaks:
		state.State = metrics.RolloutSoaking
	default:
		state.State = metrics.RolloutProgressing
	}
	r.Metrics.Rollout(owner.Name, state)
}

// groups are how many groups the decisions are about, and in how many of them everything is done.
func groups(decisions []rollout.Decision) (all, done int) {
	open := map[string]bool{}
	for _, d := range decisions {
		open[d.Group] = open[d.Group] || d.Action != rollout.Done
	}
	for _, o := range open {
		if !o {
			done++
		}
	}
	return len(open), done
}
