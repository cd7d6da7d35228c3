package objecttemplate

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/author/gotemplate"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
)

// Reconciler makes the objects of ObjectTemplates of one scope. It is the only writer of their status and of their objects.
type Reconciler struct {
	Scope scope.Scope
	// Client reads from a cache and writes.
	Client client.Client
	// Live reads sources without a cache: they may be Secrets, and are only needed when something changed.
	Live        client.Client
	Engine      *phase.Engine
	Clock       clock.PassiveClock
	Status      *status.Writer
	Environment *Environment
	// Share bounds the time that templates of a namespace may take; nil for no bound.
	Share *gotemplate.Share
	// RetryInterval and OptionalRetryInterval are how long a source that is missing is waited for.
	RetryInterval, OptionalRetryInterval time.Duration

	sources sourceIndex
	uids    sync.Map
	// failures are what templates failed with, by UID: the same text with the same values fails again, and may take seconds for it.
	failures sync.Map
}

// failed is an error of a template, and what it came from.
type failed struct {
	input [sha256.Size]byte
	err   error
	// until is the end of it when it was the time that ran out, which may have been the machine's fault.
	until time.Time
}

// slowRetry is when a template is tried again that took too long.
const slowRetry = 5 * time.Minute

// invalid is an error that is reported, and not tried again by itself.
type invalid struct {
	reason string
	err    error
	// after is when to look again nevertheless; 0 for never.
	after time.Duration
}

func (e *invalid) Error() string { return e.err.Error() }
func (e *invalid) Unwrap() error { return e.err }

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ot := &v1alpha1.ObjectTemplate{}
	if err := r.Client.Get(ctx, req.NamespacedName, ot); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, err
		}
		r.Status.Forget(req.NamespacedName)
		r.sources.set(req.NamespacedName, nil)
		if uid, ok := r.uids.LoadAndDelete(req.NamespacedName); ok {
			r.failures.Delete(uid)
			return ctrl.Result{}, r.Engine.Forget(ctx, uid.(types.UID))
		}
		return ctrl.Result{}, nil
	}
	if wait := r.Status.Wait(ot); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	r.uids.Store(req.NamespacedName, ot.UID)
	if !ot.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the object.
		rest := slices.DeleteFunc(slices.Clone(ot.Finalizers), func(f string) bool { return f == v1alpha1.CachedFinalizer })
		return ctrl.Result{}, errors.Join(r.Engine.Forget(ctx, ot.UID), r.Status.SetFinalizers(ctx, ot, rest))
	}
	if !slices.Contains(ot.Finalizers, v1alpha1.CachedFinalizer) {
		if err := r.Status.SetFinalizers(ctx, ot, append(slices.Clone(ot.Finalizers), v1alpha1.CachedFinalizer)); err != nil {
			return ctrl.Result{}, err
		}
	}
	before := *ot.Status.DeepCopy()
	after, err := r.make(ctx, ot)
	var bad *invalid
	var busy *gotemplate.BusyError
	switch {
	case errors.As(err, &busy):
		return ctrl.Result{RequeueAfter: busy.After}, nil
	case errors.As(err, &bad):
		c := phase.Condition(v1alpha1.ConditionTemplateInvalid, metav1.ConditionTrue, bad.reason, bad.Error())
		c.ObservedGeneration = ot.Generation
		conditions.Set(&ot.Status.Conditions, r.Clock.Now(), c)
		after = bad.after
	case err != nil:
		return ctrl.Result{}, err
	default:
		conditions.Remove(&ot.Status.Conditions, v1alpha1.ConditionTemplateInvalid)
	}
	return ctrl.Result{RequeueAfter: after}, r.Status.Patch(ctx, ot, before, ot.Status)
}

// make renders the template and keeps its object. It says when to look again for optional sources, and for those that can't be watched yet.
func (r *Reconciler) make(ctx context.Context, ot *v1alpha1.ObjectTemplate) (time.Duration, error) {
	if after := r.Share.Wait(tenantOf(ot)); after > 0 {
		return 0, &gotemplate.BusyError{After: after}
	}
	late, err := r.watchSources(ctx, ot)
	if err != nil {
		return 0, err
	}
	config, missing, err := r.collect(ctx, ot)
	if err != nil {
		return 0, err
	}
	obj, err := r.render(ctx, ot, config)
	if err != nil {
		return 0, err
	}
	after := time.Duration(0)
	if late {
		after = phase.PollLate
	}
	if missing {
		after = r.OptionalRetryInterval
	}
	return after, r.keep(ctx, ot, obj)
}

// tenantOf is whose time a template takes: its namespace's, or its own.
func tenantOf(ot *v1alpha1.ObjectTemplate) string {
	if ot.Namespace == "" {
		return "/" + ot.Name
	}
	return ot.Namespace
}
