// Package hold begins the passes of controllers in the hosted-cluster-config-operator: each reads its HostedControlPlane, and does nothing while something holds,
// such as spec.pausedUntil.
package hold

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/pause"
)

// Func says why nothing is to be done for a control plane, empty: nothing holds; and after which time to look again, zero: what holds is known to end by a change.
type Func func(hcp *hyperv1.HostedControlPlane, now time.Time) (reason string, after time.Duration)

// Begin reads the HostedControlPlane of a request. None and no error: it is gone, or something holds, and the pass ends with the result.
func Begin(ctx context.Context, management client.Reader, req ctrl.Request, holds Func, now time.Time) (*hyperv1.HostedControlPlane, ctrl.Result, error) {
	hcp := &hyperv1.HostedControlPlane{}
	if err := management.Get(ctx, req.NamespacedName, hcp); err != nil {
		return nil, ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading HostedControlPlane %s: %w", req, err))
	}
	if reason, after := holds(hcp, now); reason != "" {
		ctrl.LoggerFrom(ctx).V(1).Info("nothing is done while something holds", "reason", reason)
		return nil, ctrl.Result{RequeueAfter: after}, nil
	}
	return hcp, ctrl.Result{}, nil
}

// Why says why nothing is to be done, neither in the hosted cluster nor as a condition, if so, and when that ends; 0 is when something changes.
//
// operatesOn is the release image that the process was started for; empty: any. It is compared with the hosted cluster's release and not with that of
// the control plane: what this operator makes belongs to the hosted cluster.
func Why(hcp *hyperv1.HostedControlPlane, operatesOn string, now time.Time) (reason string, after time.Duration) {
	if !hcp.DeletionTimestamp.IsZero() {
		return "the hosted control plane is being deleted", 0
	}
	if p := pause.At(hcp.Spec.PausedUntil, now); p.Active { // what is no time is reported by another controller
		return "paused by spec.pausedUntil", p.Left(now)
	}
	if want := hcp.Spec.ReleaseImage; operatesOn != "" && operatesOn != want {
		return fmt.Sprintf("this process belongs to release %s, the hosted cluster to %s", operatesOn, want), 0
	}
	return "", 0
}

// For is Why for a process of a release, as the controllers take it.
func For(operatesOn string) Func {
	return func(hcp *hyperv1.HostedControlPlane, now time.Time) (string, time.Duration) {
		return Why(hcp, operatesOn, now)
	}
}
