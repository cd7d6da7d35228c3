package provider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/patch"
)

// MachineReconciler makes, watches and ends the pods of LocalMachines.
//
// It is the only writer of these pods, of spec.providerID and of the status.
type MachineReconciler struct {
	Client client.Client
	Live   client.Reader // uncached, see observe
	Clock  clock.PassiveClock
	Events events.EventRecorder

	placement placement
}

// Reconcile brings one LocalMachine a step further.
func (r *MachineReconciler) Reconcile(ctx context.Context, req ctrl.Request) (_ ctrl.Result, err error) {
	local := &infrav1.LocalMachine{}
	if err := r.Client.Get(ctx, req.NamespacedName, local); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// Before there is a pod, so that no machine can vanish without its pod being ended.
	if local.DeletionTimestamp.IsZero() {
		if added, err := patch.EnsureFinalizer(ctx, r.Client, local, infrav1.MachineFinalizer); err != nil {
			return ctrl.Result{}, fmt.Errorf("adding the finalizer to LocalMachine %s: %w", req, err)
		} else if added {
			apply.Count("LocalMachine", "patch", FieldOwner)
		}
	}
	obs, err := observe(ctx, r.Client, r.Live, local, r.Clock.Now())
	if err != nil {
		return ctrl.Result{}, err
	}
	obs.placement = r.placement
	p := planFor(obs)
	if p.create != nil {
		made, err := r.create(ctx, p.create)
		if err != nil {
			return r.refused(ctx, obs, p, err)
		}
		r.Events.Eventf(local, made, corev1.EventTypeNormal, "Created", "Create", "created pod %s", made.Name)
		obs.pod = made
		p = planFor(obs)
	}
	if p.deletePod != nil {
		apply.Count("Pod", "delete", FieldOwner)
		// By its UID: a pod of the same name that somebody has made since is not ours to end.
		err := r.Client.Delete(ctx, p.deletePod, client.Preconditions{UID: ptr.To(p.deletePod.UID)})
		if err != nil && !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("deleting pod %s: %w", client.ObjectKeyFromObject(p.deletePod), err)
		}
	}
	if p.abandon {
		apply.Count("LocalMachine", "delete", FieldOwner)
		// As it was read: an owner that it has got since is a Machine that wants it.
		err := r.Client.Delete(ctx, local, client.Preconditions{UID: ptr.To(local.UID), ResourceVersion: ptr.To(local.ResourceVersion)})
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("deleting LocalMachine %s, which has no Machine: %w", req, err)
		}
		r.Events.Eventf(local, nil, corev1.EventTypeNormal, "Orphaned", "Delete", "deleted, because the Machine that it was made for never came")
		return ctrl.Result{}, nil
	}
	if p.release {
		return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.Client, local, infrav1.MachineFinalizer)
	}
	return ctrl.Result{RequeueAfter: p.recheck}, r.report(ctx, obs, p)
}
