package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/packages/control/objectsetphase"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
)

const (
	messagePaused = "Lifecycle state set to paused."
	// workers is how many phases are worked on at a time.
	workers = 4
	// passTimeout is how long a pass over a phase may take. A phase of a thousand objects takes some seconds.
	passTimeout = 3 * time.Minute
	// startDelay is how soon a phase is looked at again when it is not known yet whether the target answers.
	startDelay = 500 * time.Millisecond
	// Phases that found trouble while the target answers probes are tried again after firstRetry, then twice as long, up to lastRetry.
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
	// maxError bounds what an error says: it ends up in logs, and the target may have had part in it.
	maxError = 2 << 10
)

// reconciler gives the phases of a scope to the session's reconciler. While there is no session, it says so in their status.
type reconciler struct {
	scope   scope.Scope
	class   string
	force   bool
	client  client.Client
	target  *Target
	clock   clock.PassiveClock
	status  *status.Writer
	backoff workqueue.TypedRateLimiter[types.NamespacedName]

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	session *session
	phases  *objectsetphase.Reconciler
}

// newReconciler's client is that of the management cluster, reading from a cache.
func newReconciler(s scope.Scope, class string, force bool, c client.Client, target *Target, clk clock.PassiveClock) *reconciler {
	return &reconciler{
		scope: s, class: class, force: force, client: s.Client(c), target: target, clock: clk,
		status:  &status.Writer{Client: s.Client(c), Kind: s.GroupVersionKind("ObjectSetPhase")},
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
	}
}

// opened makes everything that begins anew with a session.
func (r *reconciler) opened(s *session) {
	engine := &phase.Engine{Client: s.client, Mapper: s.mapper, Watch: s.watches, Rules: phase.OtherCluster(), ForceAdoption: r.force}
	phases := r.over(engine)
	r.mu.Lock()
	r.session, r.phases = s, phases
	queue := r.queue
	r.mu.Unlock()
	if queue == nil {
		return // the controller has not started; it subscribes when it does
	}
	r.subscribe(s, engine, queue)
}

func (r *reconciler) over(engine *phase.Engine) *objectsetphase.Reconciler {
	return &objectsetphase.Reconciler{Scope: r.scope, Class: r.class, Client: r.client, Engine: engine, Clock: r.clock, Status: r.status}
}

func (r *reconciler) subscribe(s *session, engine *phase.Engine, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	kind := schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: r.scope.Kind("ObjectSetPhase")}
	// It only adds to a list, and never fails.
	_ = s.watches.Owned(kind, engine.Rules.Owners, engine.Known).Start(s.ctx, queue)
}

// events is the source of the controller that tells of objects in whatever session there is.
func (r *reconciler) events() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.mu.Lock()
		r.queue = queue
		s, phases := r.session, r.phases
		r.mu.Unlock()
		if s != nil {
			r.subscribe(s, phases.Engine, queue)
		}
		return nil
	})
}

// changed looks at all phases again, because the target went or came.
func (r *reconciler) changed(ctx context.Context) {
	r.mu.Lock()
	queue := r.queue
	r.mu.Unlock()
	if queue == nil {
		return
	}
	keys, err := r.all(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing phases")
		return
	}
	for _, key := range keys {
		r.backoff.Forget(key)
		queue.Add(reconcile.Request{NamespacedName: key})
	}
}

func (r *reconciler) all(ctx context.Context) ([]types.NamespacedName, error) {
	var out []types.NamespacedName
	ofClass := client.MatchingLabels{v1alpha1.PhaseClassLabel: r.class}
	if r.scope.IsCluster() {
		list := &v1alpha1.ClusterObjectSetPhaseList{}
		if err := r.client.List(ctx, list, ofClass, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
		}
		return out, nil
	}
	list := &v1alpha1.ObjectSetPhaseList{}
	if err := r.client.List(ctx, list, ofClass, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range list.Items {
		out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return out, nil
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, trouble := r.target.current()
	if s == nil {
		return r.without(ctx, req, trouble)
	}
	r.mu.Lock()
	phases := r.phases
	if r.session != s {
		phases = nil
	}
	r.mu.Unlock()
	if phases == nil {
		return ctrl.Result{RequeueAfter: startDelay}, nil
	}
	within, cancel := s.bound(ctx)
	defer cancel()
	started := r.clock.Now()
	result, err := phases.Reconcile(within, req)
	if err == nil {
		r.backoff.Forget(req.NamespacedName)
		return result, nil
	}
	if s.ctx.Err() != nil {
		return ctrl.Result{RequeueAfter: startDelay}, nil // the session ended meanwhile
	}
	trouble = s.guard.since(started)
	if trouble == nil && (errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err)) {
		trouble = unreachable("it does not answer in time")
	}
	if trouble == nil || apierrors.IsConflict(err) {
		return ctrl.Result{}, bounded(err)
	}
	ctrl.LoggerFrom(ctx).V(1).Info("trouble with the target", "why", trouble.Message, "error", bounded(err).Error())
	r.target.Poke()
	if result, err := r.report(ctx, req, trouble); err != nil || result.RequeueAfter > 0 {
		return result, err
	}
	return ctrl.Result{RequeueAfter: r.backoff.When(req.NamespacedName)}, nil
}

func bounded(err error) error {
	if text := err.Error(); len(text) > maxError {
		return errors.New(clip.To(text, maxError) + " …")
	}
	return err
}

// without is a pass without a target: phases are looked at again when it changes.
func (r *reconciler) without(ctx context.Context, req ctrl.Request, trouble *Trouble) (ctrl.Result, error) {
	osp := &v1alpha1.ObjectSetPhase{}
	if err := r.client.Get(ctx, req.NamespacedName, osp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !osp.DeletionTimestamp.IsZero() && slices.Contains(osp.Finalizers, v1alpha1.OrphanFinalizer) {
		// Its objects stay, and nobody needs to ask the target about that.
		return r.over(&phase.Engine{Watch: noWatch{}, Rules: phase.OtherCluster()}).Reconcile(ctx, req)
	}
	if trouble == nil {
		return ctrl.Result{RequeueAfter: startDelay}, nil
	}
	return r.report(ctx, req, trouble)
}

// setUp adds the controller to the manager of the management cluster.
func (r *reconciler) setUp(mgr ctrl.Manager) error {
	ofClass := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()[v1alpha1.PhaseClassLabel] == r.class })
	err := ctrl.NewControllerManagedBy(mgr).
		Named(r.scope.Kind("objectsetphase")+"-"+r.class).
		For(r.scope.Object(&v1alpha1.ObjectSetPhase{}), builder.WithPredicates(ofClass, predicate.GenerationChangedPredicate{})).
		WatchesRawSource(r.events()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, ReconciliationTimeout: passTimeout}).
		Complete(outcome.Wrap(r))
	if err != nil {
		return fmt.Errorf("setting up the controller of phases of class %s: %w", r.class, err)
	}
	return nil
}

// noWatch watches nothing.
type noWatch struct{ phase.Watcher }

// Free implements phase.Watcher.
func (noWatch) Free(context.Context, types.UID) error { return nil }
