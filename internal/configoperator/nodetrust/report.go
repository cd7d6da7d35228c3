package nodetrust

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hcpconditions"
)

// report writes the condition when it differs, or takes it away.
func (r *Reconciler) report(ctx context.Context, hcp *hyperv1.HostedControlPlane, want *metav1.Condition) error {
	return hcpconditions.ApplyOne(ctx, r.Management, FieldOwner, r.Clock.Now(), hcp, hyperv1.NodesTrustAuthorities, want)
}
