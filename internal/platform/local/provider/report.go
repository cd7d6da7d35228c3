package provider

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
)

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
