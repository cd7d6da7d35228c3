package hostedclusterpackage

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// Namespace of the operator, where histories are kept. Without one, or while it is missing, none are kept, and no rollout returns to a last good version.
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
	return r.outcomes.Pass(ctx, r, req, r.reconcile)
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
	f := &fleet{client: r.Client, live: r.Live, clock: r.Clock, owner: owner, view: view{newest: newest, hash: hash, completed: history.completed},
		applied: r.memory.applied(owner), refusals: r.memory.refusals(owner)}
	if good := history.fallback(); good != nil {
		f.good, f.view.good = *good, &good.Spec
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

func (r *Reconciler) forgetRollout(name string) {
	if r.Metrics != nil {
		r.Metrics.ForgetRollout(name)
	}
}
