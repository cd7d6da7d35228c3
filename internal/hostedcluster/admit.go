package hostedcluster

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/conditions"
)

// newQueue makes the queue in which control planes wait for room; nil when the mode ignores capacity.
func (r *Reconciler) newQueue(mode string) *admission.Queue {
	return admission.New(mode, admission.Options{
		Reader: r.Client, Live: r.Live, Clock: r.Clock, Management: r.Management, Capabilities: r.Capabilities, Operator: r.operator(),
		ControlPlaneOperator: r.ControlPlaneOperator,
		Render: func(hc *hyperv1.HostedCluster) *hyperv1.HostedControlPlane {
			return hostedControlPlane(&state.Observed{HC: hc})
		},
	})
}

// admit finds out whether the control plane may start. It asks only when nothing else keeps it from that.
func (r *Reconciler) admit(ctx context.Context, obs *state.Observed, now time.Time) (err error) {
	c := r.Admission
	switch {
	case c == nil:
	case obs.Exists():
		obs.Admission = c.Settle(obs.HC.UID, obs.HCP != nil)
	case othersOpen(obs, now):
		obs.Admission, err = c.Decide(ctx, admission.Candidate{HostedCluster: obs.HC, ControlPlane: hostedControlPlane(obs), Release: obs.Target})
	default:
		c.Forget(obs.HC.UID)
	}
	return err
}

// othersOpen tells that all other gates are open.
func othersOpen(obs *state.Observed, now time.Time) bool {
	return decideGates(obs, now).open() && obs.Target != nil
}

// admittedCondition is absent where nobody asks, and while another gate is closed.
func admittedCondition(obs *state.Observed) *metav1.Condition {
	if obs.Admission == nil {
		return nil
	}
	status := metav1.ConditionTrue
	if obs.Admission.Waits {
		status = metav1.ConditionFalse
	}
	c := conditions.New(hyperv1.ControlPlaneAdmitted, status, obs.Admission.Reason, obs.Admission.Message)
	return &c
}
