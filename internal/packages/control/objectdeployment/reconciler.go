package objectdeployment

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
)

// Reconciler keeps the revisions of the ObjectDeployments of one scope. It is the only writer of their status, creates ObjectSets, and changes
// what they do.
type Reconciler struct {
	Scope scope.Scope
	// Client reads from a cache with the index of IndexOwners, and writes. What it reads is not changed.
	Client client.Client
	// Live reads without a cache.
	Live  client.Reader
	Clock clock.PassiveClock
	// Status writes the status of this scope's ObjectDeployments.
	Status *status.Writer
	// Events tells of rollouts and pauses.
	Events status.Events

	// hashes are those of templates, by the name of the ObjectDeployment, which is all that is known of one that is gone; computing one takes longer
	// than all the rest of a quiet pass.
	hashes sync.Map
	// made are the revisions that were created last, by the name of the ObjectDeployment. One that is to be created next comes after it, also when the cache
	// doesn't have it yet: two with one number would each take the other for a stranger.
	made sync.Map
}

// retryCollision is how long a name that was taken waits for the count of collisions to come back through the cache.
const retryCollision = 100 * time.Millisecond

// retryBehind is when to look again whether the cache has the last revision.
const retryBehind = 100 * time.Millisecond

// patience is how long a new revision has to say how it is, before it is reported that nobody knows. One needs a tenth of a second, the last of
// some hundreds that are rolled out at once about ten; and each that needs less than this saves a write.
const patience = 15 * time.Second

// soonKnown says whether the newest revision is so young that it has not reported yet.
func (o observed) soonKnown(now time.Time) bool {
	current := o.current()
	return current != nil && conditions.Get(current.Status.Conditions, v1alpha1.ConditionAvailable) == nil &&
		now.Sub(current.CreationTimestamp.Time) < patience+time.Second // the timestamp has no fractions of a second
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	read := &v1alpha1.ObjectDeployment{}
	if err := r.Client.Get(ctx, req.NamespacedName, read); err != nil {
		if apierrors.IsNotFound(err) {
			r.hashes.Delete(req.NamespacedName)
			r.made.Delete(req.NamespacedName)
			r.Status.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !read.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes the revisions, and each tears itself down
	}
	if wait := r.Status.Wait(read); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	// The spec is the cache's, and only read. The rest is a copy.
	d := &v1alpha1.ObjectDeployment{ObjectMeta: *read.ObjectMeta.DeepCopy(), Spec: read.Spec, Status: *read.Status.DeepCopy()}
	obs, err := r.observe(ctx, req.NamespacedName, d)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := planFor(obs)
	if p.create != nil {
		if behind, err := r.behind(ctx, obs); behind || err != nil {
			return ctrl.Result{RequeueAfter: retryBehind}, err
		}
	}
	err = r.apply(ctx, p)
	if p.create != nil {
		switch result, createErr := r.create(ctx, obs, p.create); {
		case createErr != nil:
			err = errors.Join(err, createErr)
			obs.refused, _ = phase.ViolationOf(createErr)
		case result == created:
			// Its event comes at once, most often with more to report than that it is there.
			return ctrl.Result{}, err
		case result == taken:
			d.Status.CollisionCount = ptr.To(ptr.Deref(read.Status.CollisionCount, 0) + 1)
			return ctrl.Result{RequeueAfter: retryCollision}, errors.Join(err, r.report(ctx, read, d))
		}
	}
	now := r.Clock.Now()
	if err == nil && obs.soonKnown(now) {
		return ctrl.Result{RequeueAfter: patience}, nil
	}
	obs.report(r.Scope.Kind("ObjectSet"), now)
	return ctrl.Result{}, errors.Join(err, r.report(ctx, read, d))
}
