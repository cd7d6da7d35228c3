package objectset

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/owner"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
)

// Finalizers of every ObjectSet.
var Finalizers = []string{v1alpha1.CachedFinalizer, v1alpha1.MetricsFinalizer}

// retryRefused is how long it takes until objects that were refused are looked at again: what stood in the way is not watched.
const retryRefused = 30 * time.Second

// Metrics records how revisions are.
type Metrics interface {
	// ObjectSet records an ObjectSet as it is after a pass.
	ObjectSet(os *v1alpha1.ObjectSet)
	// ForgetObjectSet removes what was recorded.
	ForgetObjectSet(key client.ObjectKey)
}

// Reconciler rolls out ObjectSets of one scope. It is the only writer of their status, and of the objects of phases without a class.
type Reconciler struct {
	Scope scope.Scope
	// Client reads from a cache and writes. What it reads is not changed.
	Client client.Client
	// Live reads without a cache: slices, which are large and rarely looked at, and what a deletion is decided from.
	Live    client.Reader
	Engine  *phase.Engine
	Clock   clock.PassiveClock
	Metrics Metrics

	// Status writes the status of this scope's ObjectSets.
	Status *status.Writer
	// Events tells of revisions that are refused or paused, or that can't be rolled out.
	Events status.Events

	// uids are those of the ObjectSets that have something in use, by key, for those that vanish without being torn down.
	uids sync.Map
	// troubles are what passes fail with.
	troubles troubles
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	read := &v1alpha1.ObjectSet{}
	if err := r.Client.Get(ctx, req.NamespacedName, read); err != nil {
		if apierrors.IsNotFound(err) {
			r.Metrics.ForgetObjectSet(req.NamespacedName)
			r.Status.Forget(req.NamespacedName)
			if uid, ok := r.uids.LoadAndDelete(req.NamespacedName); ok {
				r.troubles.byUID.Delete(uid)
				return ctrl.Result{}, r.Engine.Forget(ctx, uid.(types.UID))
			}
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wait := r.Status.Wait(read); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	r.uids.Store(req.NamespacedName, read.UID)
	// The spec is the cache's, and only read. The rest is a copy.
	os := &v1alpha1.ObjectSet{ObjectMeta: *read.ObjectMeta.DeepCopy(), Spec: read.Spec, Status: *read.Status.DeepCopy()}
	if !os.DeletionTimestamp.IsZero() {
		again, err := r.finalize(ctx, os)
		return ctrl.Result{RequeueAfter: again}, err
	}
	if conditions.IsTrue(os.Status.Conditions, v1alpha1.ConditionArchived) {
		return ctrl.Result{}, nil
	}
	if os.Spec.LifecycleState == v1alpha1.LifecycleStateArchived {
		again, err := r.archive(ctx, os)
		return ctrl.Result{RequeueAfter: again}, err
	}
	if err := r.ensureFinalizers(ctx, os); err != nil {
		return ctrl.Result{}, err
	}
	out, err := r.rollOut(ctx, os)
	r.tell(os, err)
	if err != nil {
		return ctrl.Result{}, errors.Join(err, r.report(ctx, os, func(*v1alpha1.ObjectSet) {}))
	}
	now := r.Clock.Now()
	if err := r.report(ctx, os, func(os *v1alpha1.ObjectSet) { out.report(os, now) }); err != nil {
		return ctrl.Result{}, err
	}
	r.Metrics.ObjectSet(os)
	return ctrl.Result{RequeueAfter: out.recheckAfter(os, now)}, nil
}

// ensureFinalizers stores the finalizers before the first object exists. An ObjectDeployment creates its ObjectSets with them.
func (r *Reconciler) ensureFinalizers(ctx context.Context, os *v1alpha1.ObjectSet) error {
	want := slices.Clone(os.Finalizers)
	for _, f := range Finalizers {
		if !slices.Contains(want, f) {
			want = append(want, f)
		}
	}
	return r.Status.SetFinalizers(ctx, os, want)
}

// Owner is what objects of an ObjectSet know it by.
func Owner(s scope.Scope, os *v1alpha1.ObjectSet) phase.Owner {
	o := phase.Owner{
		Entry:      owner.Entry{APIVersion: v1alpha1.GroupVersion.String(), Kind: s.Kind("ObjectSet"), Name: os.Name, UID: os.UID},
		Namespace:  os.Namespace,
		Generation: os.Generation,
		Revision:   os.Spec.Revision,
		Paused:     os.Spec.LifecycleState == v1alpha1.LifecycleStatePaused,
		Reported:   os.Status.ControllerOf,
		Labels:     map[string]string{},
	}
	for _, key := range []string{v1alpha1.PackageLabel, v1alpha1.InstanceLabel} {
		if value, ok := os.Labels[key]; ok {
			o.Labels[key] = value
		}
	}
	return o
}
