package ignition

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/ignition/tokens"
)

// remove deletes what was read, not what may have been made under the same name since.
func (r *Reconciler) remove(ctx context.Context, secret *corev1.Secret) error {
	err := r.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting secret %s, which has expired: %w", secret.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("deleted expired token", "secret", secret.Name)
	return nil
}

// store writes the Secret and makes its tokens known. A new token is known before it can be read, so that no machine is faster; should
// the write fail, it is forgotten again.
func (r *Reconciler) store(ctx context.Context, obs Observed, plan Plan) error {
	secret := obs.Secret
	serve := func(list []tokens.Token) {
		data := obs.Data
		if obs.Err != nil {
			// The last payload stays: what cannot be made now may be a registry that is down. Its tokens are kept as they are.
			if last := r.Tokens.Payload(secret.Name); last != nil && !invalid(obs.Err) {
				r.Tokens.Set(last, list...)
				return
			}
			if data = lastGood(secret); data == nil || invalid(obs.Err) {
				r.Tokens.Delete(secret.Name)
				return
			}
		}
		p := &tokens.Payload{Secret: secret.Name, NodePool: secret.Annotations[hyperv1.NodePoolAnnotation], Data: data}
		p.Invalid = payload.Check(data) != nil
		r.Tokens.Set(p, list...)
	}
	serve(plan.Tokens)
	if plan.Changed == nil {
		return nil
	}
	patch := client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, plan.Changed, patch, client.FieldOwner(names.IgnitionServer)); err != nil {
		if plan.Rotated {
			serve(plan.Before)
		}
		return fmt.Errorf("updating secret %s: %w", secret.Name, err)
	}
	log := ctrl.LoggerFrom(ctx)
	if plan.Rotated {
		r.Metrics.rotated()
		log.Info("rotated token", "secret", secret.Name)
	}
	if reason := string(plan.Changed.Data[token.ReasonKey]); reason != string(secret.Data[token.ReasonKey]) {
		log.Info("reported payload", "secret", secret.Name, "reason", reason)
	}
	return nil
}
