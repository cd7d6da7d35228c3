package adoption

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/memory"
)

// Window is how long a deletion that did not see our finalizer may still be under way: kube-apiserver ends requests after a minute
// (--request-timeout).
const Window = time.Minute

// Memory remembers the HostedClusters that this process has just taken on. It is safe for concurrent use; the zero value is empty.
//
// kube-apiserver decides by the object that it read whether a deletion waits for finalizers, and deletes what is there by then. A finalizer
// that is stored in between doesn't keep the object: it vanishes, and what we made for it would stay for ever. Somebody who takes our
// finalizer off later wants what is left to be left, so nothing is removed outside of the window. A process that dies in it forgets.
type Memory struct {
	of memory.Of[adoption]
}

type adoption struct {
	hc    *hyperv1.HostedCluster
	until time.Time // zero: for ever, because what is left of it is being removed
}

func (a adoption) expired(now time.Time) bool { return !a.until.IsZero() && now.After(a.until) }

// Add remembers a HostedCluster that was just taken on.
func (a *Memory) Add(hc *hyperv1.HostedCluster, now time.Time) {
	a.of.ForgetWhere(func(old adoption) bool { return old.expired(now) })
	a.of.Put(client.ObjectKeyFromObject(hc), adoption{hc: hc.DeepCopy(), until: now.Add(Window)})
}

// Get returns a copy of what was taken on, nil when that was long ago.
func (a *Memory) Get(key types.NamespacedName, now time.Time) *hyperv1.HostedCluster {
	found, ok := a.of.Get(key)
	if !ok || found.expired(now) {
		return nil
	}
	return found.hc.DeepCopy()
}

// Keep lets an adoption not expire.
func (a *Memory) Keep(key types.NamespacedName) {
	if found, ok := a.of.Get(key); ok {
		found.until = time.Time{}
		a.of.Put(key, found)
	}
}

// Forget drops a HostedCluster of which nothing is left.
func (a *Memory) Forget(key types.NamespacedName) { a.of.Forget(key) }
