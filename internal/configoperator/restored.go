package configoperator

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/recovery"
	"hcp.internal/platform/internal/kube/conditions"
)

// lookAfterRestore goes on with a hosted cluster that was restored from a backup. It returns the condition about that, nil when it was never restored, and when to look
// again; 0: it is whole.
func (r *Reconciler) lookAfterRestore(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*metav1.Condition, time.Duration, *Failure) {
	before := conditions.Get(hcp.Status.Conditions, hyperv1.HostedClusterRestoredFromBackup)
	if before != nil {
		before = before.DeepCopy()
		before.ObservedGeneration = hcp.Generation
	}
	if !recovery.Marked(hcp) {
		return before, 0, nil
	}
	obs, err := recovery.Observe(ctx, r.Hosted, hcp, r.Payload != nil)
	if err != nil {
		return before, recovery.Recheck, &Failure{Object: "what a restored cluster lacks", Err: err}
	}
	plan := recovery.PlanFor(obs)
	c := recovery.Condition(plan)
	c.ObservedGeneration = hcp.Generation
	if err := recovery.Apply(ctx, r.Hosted, plan); err != nil {
		return &c, recovery.Recheck, &Failure{Object: fmt.Sprintf("%d volume claims and pods of the backup", len(plan.Delete)), Err: err}
	}
	if plan.Waiting != "" {
		return &c, recovery.Recheck, nil
	}
	return &c, 0, nil
}

// withRecovery adds what became of a restored cluster to what a pass has to report. Reads of a cluster that gave no answer just before are not tried.
func (r *Reconciler) withRecovery(ctx context.Context, hcp *hyperv1.HostedControlPlane, answers bool, after time.Duration) ([]metav1.Condition, time.Duration, []Failure) {
	if !answers {
		if before := conditions.Get(hcp.Status.Conditions, hyperv1.HostedClusterRestoredFromBackup); before != nil {
			return []metav1.Condition{*before}, after, nil
		}
		return nil, after, nil
	}
	c, again, failure := r.lookAfterRestore(ctx, hcp)
	var list []metav1.Condition
	if c != nil {
		list = append(list, *c)
	}
	if again > 0 {
		after = min(after, again)
	}
	if failure != nil {
		return list, after, []Failure{*failure}
	}
	return list, after, nil
}
