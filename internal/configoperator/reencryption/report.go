package reencryption

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
)

// report writes the status and the condition, in one patch, when they differ. A conflict means that somebody wrote the object
// since, perhaps another process of ours: what was decided is void then, and decided again.
func (r *Reconciler) report(ctx context.Context, hcp *hyperv1.HostedControlPlane, step encryption.Step) (wrote bool, err error) {
	before := hcp.DeepCopy()
	hcp.Status.SecretEncryption = step.Status
	c := metav1.Condition{
		Type: hyperv1.EtcdDataEncryptionUpToDate, Status: metav1.ConditionFalse,
		Reason: step.Reason, Message: step.Message, ObservedGeneration: hcp.Generation,
	}
	if step.UpToDate {
		c.Status = metav1.ConditionTrue
	}
	conditions.Set(&hcp.Status.Conditions, r.Clock.Now(), c)
	if err := patch.Status(ctx, r.Management, before, hcp); err != nil {
		return false, err
	}
	if old := conditions.Get(before.Status.Conditions, c.Type); old == nil || old.Reason != c.Reason {
		ctrl.LoggerFrom(ctx).Info("reported", "hostedControlPlane", klog.KObj(hcp), "condition", c.Type, "reason", c.Reason, "message", c.Message)
	}
	return before.ResourceVersion != hcp.ResourceVersion, nil
}
