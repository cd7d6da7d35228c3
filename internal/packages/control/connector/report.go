package connector

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/phase"
)

// report writes why a phase can't be worked on. What was known about it before stays, since it may still be so.
func (r *reconciler) report(ctx context.Context, req ctrl.Request, trouble *Trouble) (ctrl.Result, error) {
	osp := &v1alpha1.ObjectSetPhase{}
	if err := r.client.Get(ctx, req.NamespacedName, osp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if osp.Labels[v1alpha1.PhaseClassLabel] != r.class {
		return ctrl.Result{}, nil
	}
	if wait := r.status.Wait(osp); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	after := *osp.Status.DeepCopy()
	set := func(c metav1.Condition) {
		c.ObservedGeneration = osp.Generation
		conditions.Set(&after.Conditions, r.clock.Now(), c)
	}
	set(phase.Condition(v1alpha1.ConditionAvailable, metav1.ConditionUnknown, trouble.Reason, trouble.Message))
	if osp.Spec.Paused {
		// It is true: nothing is written.
		set(phase.Condition(v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused, messagePaused))
	} else {
		conditions.Remove(&after.Conditions, v1alpha1.ConditionPaused)
	}
	copied := &v1alpha1.ObjectSetPhase{ObjectMeta: *osp.ObjectMeta.DeepCopy()}
	return ctrl.Result{}, r.status.Patch(ctx, copied, osp.Status, after)
}
