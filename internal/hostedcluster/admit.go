package hostedcluster

import (
	"context"
	"time"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/desired"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/status"
)

// newQueue makes the queue in which control planes wait for room; nil when the mode ignores capacity.
func (r *Reconciler) newQueue(mode string) *admission.Queue {
	return admission.New(mode, admission.Options{
		Reader: r.Client, Live: r.Live, Clock: r.Clock, Management: r.Management, Capabilities: r.Capabilities, Operator: r.operator(),
		ControlPlaneOperator: r.ControlPlaneOperator,
		Render: func(hc *hyperv1.HostedCluster) *hyperv1.HostedControlPlane {
			return desired.HostedControlPlane(&state.Observed{HC: hc})
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
	case status.OthersOpen(obs, now):
		obs.Admission, err = c.Decide(ctx, admission.Candidate{HostedCluster: obs.HC, ControlPlane: desired.HostedControlPlane(obs), Release: obs.Target})
	default:
		c.Forget(obs.HC.UID)
	}
	return err
}
