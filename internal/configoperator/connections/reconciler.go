package connections

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hcpconditions"
	"hcp.internal/platform/internal/configoperator/hold"
)

const (
	// Controller is the name of the controller.
	Controller = "connections"
	// FieldOwner owns the two conditions. It differs from that of the process, whose other conditions an apply would take away.
	FieldOwner = "hosted-cluster-config-operator-connections"
	// jitter spreads the passes of many clusters.
	jitter = 0.2
)

// Reconciler keeps the two conditions of one HostedControlPlane. It is their only writer.
type Reconciler struct {
	Management client.Client // not cached: the decision whether to write needs what was written last
	Hosted     client.Client
	Logs       Logs
	Clock      clock.PassiveClock
	// Hold says why nothing is to be done, if so.
	Hold hold.Func
}

// Reconcile asks the hosted cluster once.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp, done, err := hold.Begin(ctx, r.Management, req, r.Hold, r.Clock.Now())
	if hcp == nil {
		return done, err
	}
	plan := planFor(observe(ctx, r.Hosted, r.Logs), hcp.Generation, r.Clock.Now())
	if err := r.report(ctx, hcp, plan.Conditions); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: wait.Jitter(plan.RecheckAfter, jitter)}, nil
}

// report writes both conditions when one differs.
func (r *Reconciler) report(ctx context.Context, hcp *hyperv1.HostedControlPlane, want []metav1.Condition) error {
	changed, err := hcpconditions.Apply(ctx, r.Management, FieldOwner, r.Clock.Now(), hcp, want)
	if len(changed) == 0 {
		return err
	}
	for _, c := range want {
		ctrl.LoggerFrom(ctx).Info("reported", "hostedControlPlane", klog.KObj(hcp), "condition", c.Type, "status", c.Status, "reason", c.Reason)
	}
	return nil
}
