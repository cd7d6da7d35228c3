package hostedcluster

import (
	"context"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/step"
)

// apply carries the steps of a plan out.
func (r *Reconciler) apply(ctx context.Context, hc *hyperv1.HostedCluster, steps []step.Step) error {
	return step.Run(ctx, step.NewWriter(r.Client, hc, r.Clock), steps)
}
