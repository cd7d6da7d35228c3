package nodetrust

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hcpconditions"
)

// report writes the condition when it differs, or takes it away.
func (r *Reconciler) report(ctx context.Context, hcp *hyperv1.HostedControlPlane, want *metav1.Condition) error {
	if want == nil {
		_, err := hcpconditions.Apply(ctx, r.Management, FieldOwner, r.Clock.Now(), hcp, nil, hyperv1.NodesTrustAuthorities)
		return err
	}
	changed, err := hcpconditions.Apply(ctx, r.Management, FieldOwner, r.Clock.Now(), hcp, []metav1.Condition{*want})
	for _, c := range changed {
		ctrl.LoggerFrom(ctx).Info("reported", "hostedControlPlane", klog.KObj(hcp), "condition", c.Type, "status", c.Status, "message", c.Message)
	}
	return err
}
