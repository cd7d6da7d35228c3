package hostedcontrolplane

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/kube/conditions"
)

// messageAsleep is that of conditions about what a cluster lacks while it sleeps.
const messageAsleep = "the hosted cluster hibernates: `hypershift wake` wakes it"

// sleepers are the workloads that hibernation waits for.
func (obs Observed) sleepers() []string {
	sets := []appsv1.StatefulSet{}
	if obs.Etcd != nil {
		sets = append(sets, *obs.Etcd)
	}
	for _, shard := range obs.EtcdShards {
		if shard.workload != nil {
			sets = append(sets, *shard.workload)
		}
	}
	return slices.DeleteFunc(component.Running(obs.Deployments, sets), component.StaysAwake)
}

// hibernated says how far hibernation, or waking from it, is; nil: the cluster is awake. available is the condition of that name.
func hibernated(obs Observed, available *metav1.Condition) *metav1.Condition {
	var c metav1.Condition
	running := obs.sleepers()
	switch {
	case component.Hibernates(obs.HCP) && len(running) > 0:
		c = conditions.False(hyperv1.HostedClusterHibernated, hyperv1.FallingAsleepReason, "still running: "+listed(running))
	case component.Hibernates(obs.HCP):
		c = conditions.True(hyperv1.HostedClusterHibernated, hyperv1.AsleepReason, "nothing runs but the operators of the control plane; data of etcd, addresses and certificates are kept")
	case conditions.Get(obs.HCP.Status.Conditions, hyperv1.HostedClusterHibernated) == nil, available != nil && available.Status == metav1.ConditionTrue:
		return nil
	default:
		c = conditions.False(hyperv1.HostedClusterHibernated, hyperv1.WakingReason, "the control plane is on its way up")
		if available != nil && available.Message != "" {
			c.Message += ": " + strings.TrimSuffix(available.Message, ".")
		}
	}
	return &c
}

// runningSince says since when the control plane has been awake, as far as conditions of before know: since etcd came or went. now: it is not awake.
func runningSince(hcp *hyperv1.HostedControlPlane, before []metav1.Condition, now time.Time) time.Time {
	if component.Hibernates(hcp) || conditions.Get(before, hyperv1.HostedClusterHibernated) != nil {
		return now
	}
	if c := conditions.Get(before, hyperv1.EtcdAvailable); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// calm gives what a sleeping cluster lacks a reason of its own, so that nobody takes it for broken.
func calm(obs Observed, conds []metav1.Condition) {
	if !component.Hibernates(obs.HCP) {
		return
	}
	for i := range conds {
		switch conds[i].Type {
		case hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable, hyperv1.HostedControlPlaneAvailable:
			if conds[i].Status == metav1.ConditionFalse {
				conds[i].Reason, conds[i].Message = hyperv1.HostedClusterHibernated, messageAsleep
			}
		}
	}
}
