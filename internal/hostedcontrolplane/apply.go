package hostedcontrolplane

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/kubeapiserver"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/pki"
)

func (r *Reconciler) applier() *apply.Applier {
	return apply.New(r.Client, names.ControlPlaneOperator).Remembering(&r.applied)
}

// publish applies the Services and what goes with them.
func (r *Reconciler) publish(ctx context.Context, p publication) error {
	errs := []error{r.applier().All(ctx, p.objects...)}
	for _, claim := range p.claims {
		// It only saves time: the controller of StatefulSets makes it otherwise, and its events say why it can't.
		if err := r.claim(ctx, claim); err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("volume claim not made ahead", "claim", claim.Name, "reason", err.Error())
		}
	}
	for _, obj := range p.remove {
		errs = append(errs, r.applier().Delete(ctx, obj))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("publishing the API: %w", err)
	}
	return nil
}

// claim makes a volume claim if it is not there.
func (r *Reconciler) claim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	found, err := r.get(ctx, claim.Namespace, claim.Name, &corev1.PersistentVolumeClaim{})
	if found || err != nil {
		return err
	}
	if err := r.Client.Create(ctx, claim, client.FieldOwner(names.ControlPlaneOperator)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("claiming a volume: %w", err)
	}
	return nil
}

// storeCertificates carries out the plan of the second round.
func (r *Reconciler) storeCertificates(ctx context.Context, p pki.Plan) error {
	if err := r.PKI.Apply(ctx, p); err != nil {
		return fmt.Errorf("storing certificates: %w", err)
	}
	return nil
}

// rollOut carries out the plan of the last round, in the order of the components. One that fails stops no other.
func (r *Reconciler) rollOut(ctx context.Context, p rolloutPlan) error {
	p.context.Context = ctx
	executor := component.Executor{Client: r.Client, Apply: r.applier(), Clock: r.Clock}
	var errs []error
	for _, c := range p.components {
		errs = append(errs, executor.Reconcile(p.context, c))
	}
	return errors.Join(errs...)
}

// finalize lets the HostedControlPlane go. Everything here is owned by it or goes with the namespace, and nothing of it lives outside of the
// management cluster, so there is nothing to wait for: least of all for the hosted API, which may be dead.
func (r *Reconciler) finalize(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	if err := kubeapiserver.End(ctx, r.Client, hcp.Namespace); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the control plane takes longer to go") // and that is no reason for it to stay
	}
	return patch.RemoveFinalizer(ctx, r.Client, hcp, Finalizer)
}
