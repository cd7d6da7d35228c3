package hostedcontrolplane

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/trouble"
	"hcp.internal/platform/internal/kube/conditions"
)

// observeTroubles looks why pods do not run, when some don't and have had the time that it takes when all is well. Pods and events are not
// cached: a control plane that runs has no use for them.
func (r *Reconciler) observeTroubles(ctx context.Context, obs *Observed) error {
	ns := obs.HCP.Namespace
	if r.Live == nil || r.Clock.Since(obs.HCP.CreationTimestamp.Time) < claimsAfter {
		return nil
	}
	deployments, sets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{deployments, sets} {
		if err := r.Client.List(ctx, list, client.InNamespace(ns), client.MatchingLabels{names.ManagedByLabel: names.ControlPlaneOperator}); err != nil {
			return fmt.Errorf("listing workloads: %w", err)
		}
	}
	if !short(deployments.Items, sets.Items) {
		return nil
	}
	var err error
	obs.Troubles, err = trouble.Look(ctx, r.Live, ns, deployments.Items, sets.Items, r.Clock.Now())
	return err
}

// short tells that some workload has fewer pods than it wants.
func short(deployments []appsv1.Deployment, sets []appsv1.StatefulSet) bool {
	for i := range deployments {
		d := &deployments[i]
		want := ptr.Deref(d.Spec.Replicas, 1)
		if d.Status.AvailableReplicas < want || d.Status.UpdatedReplicas < want || d.Status.Replicas > want {
			return true
		}
	}
	for i := range sets {
		s := &sets[i]
		want := ptr.Deref(s.Spec.Replicas, 1)
		if s.Status.ReadyReplicas < want || s.Status.UpdatedReplicas < want {
			return true
		}
	}
	return false
}

// trouble is that of a component, for its report.
func (obs Observed) trouble(name string) (reason, message string) {
	if t := trouble.Of(obs.Troubles, name); t != nil {
		return t.Reason, t.Message
	}
	return "", ""
}

// counted are reasons that only say how many of something there are, or that something does not answer.
var counted = map[string]bool{
	hyperv1.EtcdWaitingForQuorumReason: true, hyperv1.WaitingForAvailableReason: true, hyperv1.NotFoundReason: true,
	hyperv1.KASLoadBalancerNotReachableReason: true, hyperv1.ControlPlaneComponentsNotAvailableReason: true, hyperv1.FromClusterVersionReason: true,
}

// blame puts the likeliest root cause before what only counts.
func (obs Observed) blame(cond metav1.Condition) metav1.Condition {
	if len(obs.Troubles) == 0 || !counted[cond.Reason] {
		return cond
	}
	cause := obs.Troubles[0]
	cond.Reason, cond.Message = cause.Reason, cause.Message+" ("+cond.Message+")"
	return cond
}

// available is availableUntroubled with the root cause, when pods do not run.
func available(obs Observed, others []metav1.Condition) metav1.Condition {
	cond := availableUntroubled(obs, others)
	if cond.Status == metav1.ConditionTrue {
		return cond
	}
	return obs.blame(cond)
}

// blameProgress puts the root cause into the condition that says that a version is being rolled out.
func (obs Observed) blameProgress(conds []metav1.Condition) {
	if c := conditions.Get(conds, hyperv1.ClusterVersionProgressing); c != nil && c.Status == metav1.ConditionTrue {
		*c = obs.blame(*c)
	}
}
