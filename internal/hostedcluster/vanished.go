package hostedcluster

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/teardown"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/read"
)

// adoptionWindow is how long a deletion that did not see our finalizer may still be under way: kube-apiserver ends requests after a minute
// (--request-timeout).
const adoptionWindow = time.Minute

// adoptions remembers the HostedClusters that this process has just taken on. It may be used concurrently; the zero value is empty.
//
// kube-apiserver decides by the object that it read whether a deletion waits for finalizers, and deletes what is there by then. A finalizer
// that is stored in between doesn't keep the object: it vanishes, and what we made for it would stay for ever. Somebody who takes our
// finalizer off later wants what is left to be left, so nothing is removed outside of the window. A process that dies in it forgets.
type adoptions struct {
	mu sync.Mutex
	of map[types.NamespacedName]adoption
}

type adoption struct {
	hc    *hyperv1.HostedCluster
	until time.Time // zero: for ever, because what is left of it is being removed
}

func (a adoption) expired(now time.Time) bool { return !a.until.IsZero() && now.After(a.until) }

func (a *adoptions) add(hc *hyperv1.HostedCluster, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.of, func(_ types.NamespacedName, old adoption) bool { return old.expired(now) })
	if a.of == nil {
		a.of = map[types.NamespacedName]adoption{}
	}
	a.of[client.ObjectKeyFromObject(hc)] = adoption{hc: hc.DeepCopy(), until: now.Add(adoptionWindow)}
}

// get returns a copy of what was taken on, nil when that was long ago.
func (a *adoptions) get(key types.NamespacedName, now time.Time) *hyperv1.HostedCluster {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.of[key]
	if !ok || found.expired(now) {
		return nil
	}
	return found.hc.DeepCopy()
}

// keep lets an adoption not expire.
func (a *adoptions) keep(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found, ok := a.of[key]; ok {
		found.until = time.Time{}
		a.of[key] = found
	}
}

func (a *adoptions) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, key)
}

// removeVanished makes the next move of removing what is left of a HostedCluster that was deleted in the moment in which it was taken on.
func (r *Reconciler) removeVanished(ctx context.Context, key types.NamespacedName) (ctrl.Result, error) {
	hc := r.adopted.get(key, r.Clock.Now())
	if hc == nil {
		return ctrl.Result{}, nil // gone as it should be
	}
	// The cache may be behind: the object, or another of the same name, may exist. Its own passes do the rest then.
	live, err := read.Optional(ctx, r.Live, key, &hyperv1.HostedCluster{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if live != nil {
		return ctrl.Result{}, outcome.ErrStale
	}
	r.adopted.keep(key)
	remover := r.remover()
	left, err := remover.Observe(ctx, hc)
	if err != nil {
		return ctrl.Result{}, err
	}
	if next := teardown.PlanFor(left, r.Clock.Now()); !next.Done() {
		return ctrl.Result{RequeueAfter: next.RecheckAfter}, remover.Apply(ctx, left, next)
	}
	if err := remover.Sweep(ctx, hc); err != nil {
		return ctrl.Result{}, err
	}
	r.uids.Forget(names.NamespaceOf(hc))
	r.adopted.forget(key)
	ctrl.LoggerFrom(ctx).Info("removed what was left of a hosted cluster that was deleted as soon as it was created")
	return ctrl.Result{}, nil
}
