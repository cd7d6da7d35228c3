package provider

import (
	"context"
	"errors"
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
	"hcp.internal/platform/internal/kube/conditions"
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

// create makes the pod, or finds the one that it made before a crash. Create and not apply, because a pod that is there already must
// not be taken for a machine that has just been made.
func (r *MachineReconciler) create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	apply.Count("Pod", "create", FieldOwner)
	made := pod.DeepCopy()
	err := r.Client.Create(ctx, made, client.FieldOwner(FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		found := &corev1.Pod{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(pod), found); err != nil {
			return nil, fmt.Errorf("reading pod %s: %w", client.ObjectKeyFromObject(pod), err)
		}
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("creating pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	return made, nil
}

// refused reports that the API server doesn't accept the pod. Only a change of something else can help then.
func (r *MachineReconciler) refused(ctx context.Context, obs observed, p plan, cause error) (ctrl.Result, error) {
	if !apierrors.IsInvalid(cause) && !apierrors.IsForbidden(cause) && !apierrors.IsBadRequest(cause) {
		return ctrl.Result{}, cause
	}
	p = p.absent(obs, infrav1.ReasonInvalidSpec, bounded(cause.Error()))
	return ctrl.Result{}, errors.Join(cause, r.report(ctx, obs, p))
}

// report writes the provider ID and the status, each only when it differs.
func (r *MachineReconciler) report(ctx context.Context, obs observed, p plan) error {
	local := obs.local
	if p.providerID != "" && local.Spec.ProviderID != p.providerID {
		before := local.DeepCopy()
		local.Spec.ProviderID = p.providerID
		apply.Count("LocalMachine", "patch", FieldOwner)
		if err := r.Client.Patch(ctx, local, client.MergeFrom(before), client.FieldOwner(FieldOwner)); err != nil {
			return fmt.Errorf("setting the provider ID of LocalMachine %s: %w", client.ObjectKeyFromObject(local), client.IgnoreNotFound(err))
		}
	}
	before := local.DeepCopy()
	conds := p.status.Conditions
	p.status.Conditions = local.Status.Conditions
	local.Status = *p.status.DeepCopy()
	conditions.Set(&local.Status.Conditions, r.Clock.Now(), conds...)
	r.announce(before, local)
	if err := patch.Status(ctx, r.Client, before, local); err != nil {
		return fmt.Errorf("writing the status of LocalMachine %s: %w", client.ObjectKeyFromObject(local), err)
	}
	return nil
}

// announce makes an event of what a person would want to see in the history of a machine.
func (r *MachineReconciler) announce(before, after *infrav1.LocalMachine) {
	was, is := conditions.Get(before.Status.Conditions, infrav1.MachineReady), conditions.Get(after.Status.Conditions, infrav1.MachineReady)
	if is == nil || (was != nil && was.Reason == is.Reason) {
		return
	}
	switch is.Reason {
	case infrav1.ReasonMachineGone, infrav1.ReasonMachineFailed, infrav1.ReasonRebooting, infrav1.ReasonPoweredOff:
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Observe", "%s", is.Message)
	case infrav1.ReasonReady:
		r.Events.Eventf(after, nil, corev1.EventTypeNormal, "Running", "Observe", "the machine runs")
	}
}
