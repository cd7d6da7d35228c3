package hostedcluster

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/release"
)

const (
	// lookupPatience is how long a worker waits for a registry. They are few and for all tenants; registries answer in tens of milliseconds, those
	// of some tenants never.
	lookupPatience = 2 * time.Second
	// pendingRecheck is when to look again after a lookup whose end was not heard of.
	pendingRecheck = time.Minute
	// ReconciliationTimeout bounds a pass: everything that it calls has limits of its own, which are tighter.
	ReconciliationTimeout = 2 * time.Minute
)

// Lookups are the ends of lookups of images that a worker did not wait for, as events of the HostedCluster that they were for. provider is usually a
// *release.Registry; any other never makes anybody wait.
func Lookups(provider any) <-chan event.GenericEvent {
	const most = 1024 // who is missed looks again by itself
	events := make(chan event.GenericEvent, most)
	if registry, ok := provider.(*release.Registry); ok {
		registry.Subscribe(func(asker types.NamespacedName) {
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: asker.Namespace, Name: asker.Name}}
			select {
			case events <- event.GenericEvent{Object: hc}:
			default:
			}
		})
	}
	return events
}

// awaitRelease ends a pass that can't go on before a registry has answered. It says so when nothing is known of the release yet.
func (r *Reconciler) awaitRelease(ctx context.Context, hc *hyperv1.HostedCluster, reason error) (ctrl.Result, error) {
	before := hc.DeepCopy()
	if c := conditions.Get(hc.Status.Conditions, hyperv1.ValidReleaseImage); c == nil || c.ObservedGeneration != hc.Generation {
		conditions.Set(&hc.Status.Conditions, r.Clock.Now(), metav1.Condition{
			Type: hyperv1.ValidReleaseImage, Status: metav1.ConditionUnknown, Reason: hyperv1.StatusUnknownReason, Message: reason.Error(),
			ObservedGeneration: hc.Generation,
		})
	}
	return ctrl.Result{RequeueAfter: pendingRecheck}, patch.Status(ctx, r.Client, before, hc)
}

func isPending(err error) bool { return errors.Is(err, release.ErrPending) }
