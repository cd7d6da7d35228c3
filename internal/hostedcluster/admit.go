package hostedcluster

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/kube/conditions"
)

// newQueue makes the queue in which control planes wait for room; nil when the mode ignores capacity.
func (r *Reconciler) newQueue(mode string) *admission.Queue {
	return admission.New(mode, admission.Options{
		Reader: r.Client, Live: r.Live, Clock: r.Clock, Management: r.Management, Capabilities: r.Capabilities, Operator: r.operator(),
		ControlPlaneOperator: r.ControlPlaneOperator,
		Render: func(hc *hyperv1.HostedCluster) *hyperv1.HostedControlPlane {
			return hostedControlPlane(&observed{hc: hc})
		},
	})
}

// admit finds out whether the control plane may start. It asks only when nothing else keeps it from that.
func (r *Reconciler) admit(ctx context.Context, obs *observed, now time.Time) (err error) {
	c := r.Admission
	switch {
	case c == nil:
	case obs.exists():
		obs.admission = c.Settle(obs.hc.UID, obs.hcp != nil)
	case obs.open(now):
		obs.admission, err = c.Decide(ctx, admission.Candidate{HostedCluster: obs.hc, ControlPlane: hostedControlPlane(obs), Release: obs.target})
	default:
		c.Forget(obs.hc.UID)
	}
	return err
}

// exists tells that something of the control plane has been made. Its namespace is made after it was admitted, and nothing before.
func (obs *observed) exists() bool {
	if obs.hcp != nil {
		return true
	}
	ns := obs.namespace
	return ns != nil && ns.DeletionTimestamp.IsZero() && ns.Annotations[hyperv1.HostedClusterAnnotation] == names.BackReference(obs.hc)
}

// open tells that all other gates are.
func (obs *observed) open(now time.Time) bool {
	return decideGates(obs, now).open() && obs.target != nil
}

// admittedCondition is absent where nobody asks, and while another gate is closed.
func admittedCondition(obs *observed) *metav1.Condition {
	if obs.admission == nil {
		return nil
	}
	status := metav1.ConditionTrue
	if obs.admission.Waits {
		status = metav1.ConditionFalse
	}
	c := conditions.New(hyperv1.ControlPlaneAdmitted, status, obs.admission.Reason, obs.admission.Message)
	return &c
}
