package provider

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
)

// ClusterReconciler tells Cluster API that there is nothing to provision for a LocalCluster once its endpoint is known. It is the only
// writer of its status; the endpoint is the hypershift-operator's. A LocalCluster owns nothing outside, so it needs no finalizer.
type ClusterReconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
}

// Reconcile reports one LocalCluster.
func (r *ClusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	lc := &infrav1.LocalCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, lc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, paused := lc.Annotations[pausedAnnotation]; paused || !lc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := lc.DeepCopy()
	ready := clusterReady(lc)
	if ready.Status == metav1.ConditionTrue {
		lc.Status.Initialization.Provisioned = ptr.To(true)
	}
	conditions.Set(&lc.Status.Conditions, r.Clock.Now(), ready)
	if err := patch.Status(ctx, r.Client, before, lc); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status of LocalCluster %s: %w", req, err)
	}
	return ctrl.Result{}, nil
}

func clusterReady(lc *infrav1.LocalCluster) metav1.Condition {
	c := metav1.Condition{Type: infrav1.MachineReady, Status: metav1.ConditionTrue, Reason: infrav1.ReasonReady, ObservedGeneration: lc.Generation}
	if e := lc.Spec.ControlPlaneEndpoint; e.Host == "" || e.Port == 0 {
		c.Status, c.Reason = metav1.ConditionFalse, infrav1.ReasonWaitingForEndpoint
		c.Message = "the hosted cluster's API has no address yet"
	}
	return c
}
