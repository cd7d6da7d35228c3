package configoperator

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hcpconditions"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
)

// report writes our conditions, when one differs.
func (r *Reconciler) report(ctx context.Context, hcp *hyperv1.HostedControlPlane, want ...metav1.Condition) error {
	changed, err := hcpconditions.Apply(ctx, r.Management, names.ConfigOperator, r.Clock.Now(), hcp, want)
	for _, c := range changed {
		if old := conditions.Get(hcp.Status.Conditions, c.Type); c.Status != metav1.ConditionTrue || old != nil && old.Status != c.Status {
			ctrl.LoggerFrom(ctx).Info("reported", "hostedControlPlane", klog.KObj(hcp), "condition", c.Type, "status", c.Status, "message", c.Message)
		}
	}
	return err
}
