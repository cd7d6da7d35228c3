package hostedcluster

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/release"
)

// pendingRecheck is when to look again after a lookup whose end was not heard of.
const pendingRecheck = time.Minute

// awaitRelease ends a pass that can't go on before a registry has answered. It says so when nothing is known of the release yet.
func (r *Reconciler) awaitRelease(ctx context.Context, hc *hyperv1.HostedCluster, reason error) (ctrl.Result, error) {
	before := hc.DeepCopy()
	if c := conditions.Get(hc.Status.Conditions, hyperv1.ValidReleaseImage); c == nil || c.ObservedGeneration != hc.Generation {
		conditions.Set(&hc.Status.Conditions, r.Clock.Now(), metav1.Condition{
			Type: hyperv1.ValidReleaseImage, Status: metav1.ConditionUnknown, Reason: hyperv1.StatusUnknownReason, Message: reason.Error(),
			ObservedGeneration: hc.Generation,
		})
	}
	return ctrl.Result{RequeueAfter: pendingRecheck}, patch.Status(ctx, r.Client, before, hc)
}

func isPending(err error) bool { return errors.Is(err, release.ErrPending) }
