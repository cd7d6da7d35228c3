package nodepool

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/pause"
)

// paused tells whether the pool is paused, reports it, and stops Cluster API, health checks included, or lets it go on. That needs only the spec and what is there, so
// it comes before the gates: who wants machines to be left alone need not repair the pool first.
func (p *pass) paused() bool {
	const t = hyperv1.NodePoolReconciliationActiveConditionType
	asked := pause.At(p.spec().PausedUntil, p.now)
	switch {
	case asked.Invalid:
		p.set(condition(t, corev1.ConditionTrue, hyperv1.InvalidPausedUntilValueReason, "spec.pausedUntil is neither a time such as 2027-01-31T12:00:00Z nor true or false: it is ignored"))
	case asked.Active && asked.Until.IsZero():
		p.set(bad(t, hyperv1.ReconciliationPausedReason, "spec.pausedUntil pauses the pool until it is removed"))
	case asked.Active:
		p.set(bad(t, hyperv1.ReconciliationPausedReason, "spec.pausedUntil pauses the pool until "+asked.Until.UTC().Format(time.RFC3339)))
		p.recheck(asked.Left(p.now) + time.Second) // times in the spec have whole seconds
	default:
		p.set(condition(t, corev1.ConditionTrue, hyperv1.NodePoolReconciliationActiveReason, hyperv1.AllIsWellMessage))
	}
	for _, obj := range p.workloads() {
		value, has := obj.GetAnnotations()[machines.PausedAnnotation]
		switch {
		case asked.Active && value != "true":
			p.pause = append(p.pause, obj)
		case !asked.Active && has:
			p.unpause = append(p.unpause, obj)
		}
	}
	return asked.Active
}

// workloads are the objects of Cluster API that bear the pool's name and are there.
func (p *pass) workloads() []client.Object {
	var list []client.Object
	if p.obs.deployment != nil {
		list = append(list, p.obs.deployment)
	}
	if p.obs.set != nil {
		list = append(list, p.obs.set)
	}
	if p.obs.healthCheck != nil {
		list = append(list, p.obs.healthCheck)
	}
	for _, check := range p.obs.spotChecks {
		list = append(list, check)
	}
	return list
}

// pendingRecheck is when to look again after a lookup whose end was not heard of.
const pendingRecheck = time.Minute

// pendingPlan decides what a pass does that can't go on before a registry has answered, which is an event: it pauses or lets go on, and that is all.
func pendingPlan(obs *observed, now time.Time) plan {
	const t = hyperv1.NodePoolValidReleaseImageConditionType
	p := &pass{obs: obs, now: now}
	p.recheck(pendingRecheck)
	p.paused()
	if !slices.ContainsFunc(obs.pool.Status.Conditions, func(c hyperv1.NodePoolCondition) bool {
		return c.Type == t && c.ObservedGeneration == obs.pool.Generation
	}) {
		p.set(condition(t, corev1.ConditionUnknown, hyperv1.StatusUnknownReason, obs.releaseErr.Error()))
	}
	return p.plan
}
