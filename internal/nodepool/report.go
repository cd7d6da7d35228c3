package nodepool

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/patch"
)

// report writes the status, and tells what became of it. applied says that everything of the plan was written.
func (r *Reconciler) report(ctx context.Context, pool *hyperv1.NodePool, p *plan, applied bool, now time.Time) error {
	before := pool.DeepCopy()
	if applied {
		pool.Status.Version = p.version
		if p.kept != nil {
			pool.Status.Platform = p.kept.Status
		}
	}
	pool.Status.Replicas = p.replicas
	pool.Status.NodesInfo.NodeVersions = p.nodes
	for _, c := range p.conditions {
		setCondition(&pool.Status.Conditions, c, pool.Generation, now)
	}
	for _, t := range p.removed {
		removeCondition(&pool.Status.Conditions, t)
	}
	if err := patch.Status(ctx, r.Client, before, pool); err != nil {
		return err
	}
	observeTransitions(before, pool)
	tellChanges(r.Events, before, pool)
	if err := r.Journal.Record(ctx, pool, dated(pool.Status.Conditions)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "keeping the journal; the next pass tries again")
	}
	return nil
}

// reportMissingCluster says what a pool without a HostedCluster waits for. The HostedCluster's arrival causes the next pass.
func (r *Reconciler) reportMissingCluster(ctx context.Context, pool *hyperv1.NodePool, hc *hyperv1.HostedCluster) error {
	before, message := pool.DeepCopy(), fmt.Sprintf("HostedCluster %s/%s, which spec.clusterName names, does not exist", pool.Namespace, pool.Spec.ClusterName)
	if hc != nil {
		message = fmt.Sprintf("HostedCluster %s/%s is being deleted", hc.Namespace, hc.Name)
	}
	setCondition(&pool.Status.Conditions, bad(hyperv1.NodePoolReadyConditionType, hyperv1.NodePoolNotFoundReason, message), pool.Generation, r.Clock.Now())
	return patch.Status(ctx, r.Client, before, pool)
}
