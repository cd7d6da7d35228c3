package hostedclusterpackage

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/packages/control/metrics"
	"hcp.internal/platform/internal/packages/control/rollout"
)

const (
	// safety is how long a rollout waits at most for an event that got lost.
	safety = 5 * time.Minute
)

// Reconciler rolls HostedClusterPackages out. It is the only writer of their status and, as field manager package-operator, of the Packages
// that they control.
type Reconciler struct {
	Client client.Client // cached reads, writes
	Live   client.Reader // past the cache: where a stale read would take down too much
	// Namespace of the operator, where histories are kept.
	Namespace string
	Clock     clock.PassiveClock
	Events    events.EventRecorder
	// Metrics records how far rollouts are; nil: nobody wants to know.
	Metrics Metrics
	// Journal keeps what became of conditions, in Namespace; nil: nobody does.
	Journal *journal.Book

	memory   memory
	outcomes outcome.Outcomes
}

// Metrics records rollouts by the name of their HostedClusterPackage. It is metrics.Recorder.
type Metrics interface {
	Rollout(name string, r metrics.Rollout)
	ForgetRollout(name string)
}

// Reconcile makes one pass over a fleet.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, req)
	return r.outcomes.Of(req, result, err)
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	owner, hash, err := r.read(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if owner == nil {
		r.forgetRollout(req.Name)
		return ctrl.Result{}, nil
	}
	if !owner.DeletionTimestamp.IsZero() {
		r.memory.forget(owner.Name)
		r.forgetRollout(owner.Name)
		return ctrl.Result{}, nil // its Packages are garbage
	}
	if _, err := selectorOf(owner); err != nil {
		r.Events.Eventf(owner, nil, corev1.EventTypeWarning, "InvalidSelector", "Reconcile", "%.900s", err.Error())
		return ctrl.Result{}, nil // until somebody changes it
	}
	r.warn(owner)
	newest := templateOf(owner)
	history, err := r.remember(ctx, owner, newest, hash)
	if err != nil {
		if !errors.Is(err, errNotTheNewest) {
			r.Events.Eventf(owner, nil, corev1.EventTypeWarning, "RolloutFailed", "Reconcile", "%.900s", err.Error())
		}
		return ctrl.Result{}, err
	}
	f := &fleet{client: r.Client, live: r.Live, clock: r.Clock, owner: owner, view: view{newest: newest, hash: hash},
		applied: r.memory.applied(owner), refusals: r.memory.refusals(owner)}
	if history.good != nil {
		f.good, f.view.good = *history.good, &history.good.Spec
	}
	f.view.fresh, f.view.refusals, f.view.now = f.applied.fresh, f.refusals, r.Clock.Now()
	in, err := observe(ctx, r.Client, owner, f.view)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.readTimes(ctx, &in, f.applied); err != nil {
		return ctrl.Result{}, err
	}
	plan, err := rollout.Step(ctx, f, in, r.Clock.Now())
	r.report(owner, plan)
	r.record(owner, plan, in.Settings.Options.Paused)
	r.memory.saw(f.owner)
	if err != nil {
		if !errors.Is(err, errNotTheNewest) {
			r.Events.Eventf(owner, nil, corev1.EventTypeWarning, "RolloutFailed", "Reconcile", "%.900s", err.Error())
		}
		return ctrl.Result{}, err
	}
	if err := r.Journal.Record(ctx, f.owner, f.owner.Status.Conditions); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "keeping the journal; the next pass tries again")
	}
	f.applied.keep(plan.Processing)
	if plan.Finished {
		return ctrl.Result{RequeueAfter: plan.Again}, r.complete(ctx, owner, history)
	}
	if plan.Again == 0 || plan.Again > safety {
		plan.Again = safety
	}
	if next := f.refusals.next(r.Clock.Now()); next > 0 && next < plan.Again {
		plan.Again = next
	}
	return ctrl.Result{RequeueAfter: plan.Again}, nil
}

// read is the HostedClusterPackage and the hash of its template; nil when it is gone. For a pass, the cache's state or our own last write is new enough:
// if it isn't the newest, the API server refuses the pass's first write. Only a template that isn't in memory yet is read live, as it is going to be
// stored as the newest revision: after a start of the process, the cache's may be older than the one that is stored.
func (r *Reconciler) read(ctx context.Context, name types.NamespacedName) (*packagesv1.HostedClusterPackage, string, error) {
	owner := &packagesv1.HostedClusterPackage{}
	if err := r.Client.Get(ctx, name, owner); err != nil {
		if ignoreNotFound(err) == nil {
			r.memory.forget(name.Name)
		}
		return nil, "", ignoreNotFound(err)
	}
	owner = r.memory.newest(owner)
	hash, err := templateOf(owner).hash()
	if _, known := r.memory.get(owner, hash); known || err != nil {
		return owner, hash, err
	}
	owner = &packagesv1.HostedClusterPackage{}
	if err := r.Live.Get(ctx, name, owner); err != nil {
		return nil, "", ignoreNotFound(err)
	}
	r.memory.saw(owner)
	hash, err = templateOf(owner).hash()
	return owner, hash, err
}

// readTimes finds out when the Packages that are in flight were changed, which caches don't keep. Only deadlines need it.
func (r *Reconciler) readTimes(ctx context.Context, in *rollout.Observed, changes *applied) error {
	if in.Settings.Options.Deadline == 0 {
		return nil
	}
	var unknown []packagesv1.HostedClusterPackageRefStatus
	for _, ref := range in.Processing {
		p, ok := in.Packages[ref.Namespace]
		if !ok || p.UID != ref.UID || p.Available && p.Progressed {
			continue
		}
		if p.AppliedAt = changes.at(ref.Namespace, ref.UID); p.AppliedAt.IsZero() {
			unknown = append(unknown, ref)
			continue
		}
		in.Packages[ref.Namespace] = p
	}
	times := make([]time.Time, len(unknown))
	err := errors.Join(atOnce(len(unknown), func(i int) error {
		ref, obj := unknown[i], &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(packagesv1.GroupVersion.WithKind("Package"))
		if err := r.Live.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, obj); ignoreNotFound(err) != nil {
			return fmt.Errorf("reading package %s/%s: %w", ref.Namespace, ref.Name, err)
		}
		times[i] = appliedAt(obj)
		return nil
	})...)
	for i, ref := range unknown {
		p := in.Packages[ref.Namespace]
		p.AppliedAt = times[i]
		in.Packages[ref.Namespace] = p
	}
	return err
}

// warn tells of what is asked for and can't be meant.
func (r *Reconciler) warn(owner *packagesv1.HostedClusterPackage) {
	if owner.Status.ObservedGeneration == int32(owner.Generation) { // the published width
		return // told already
	}
	if s := owner.Spec.Strategy; s.Instant != nil && s.RollingUpgrade != nil {
		r.Events.Eventf(owner, nil, corev1.EventTypeWarning, "StrategyIsInstant", "Reconcile",
			"spec.strategy has both instant and rollingUpgrade: instant wins, and all packages change at once; remove spec.strategy.instant to roll")
	}
	if _, err := rollout.ParseOptions(owner.Annotations); err != nil {
		r.Events.Eventf(owner, nil, corev1.EventTypeWarning, "InvalidAnnotation", "Reconcile", "%v", err)
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
	case paused:
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

func (r *Reconciler) forgetRollout(name string) {
	if r.Metrics != nil {
		r.Metrics.ForgetRollout(name)
	}
}
