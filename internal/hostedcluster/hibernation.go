package hostedcluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
)

// A cluster falls asleep from its edges: NodePools give up their machines, then the control plane is told, which stops everything but its operators.
// On the way back the control plane comes first, and machines are made when it serves.

// withWorkers are the NodePools that still have machines, or have not said that they have none.
func (obs *observed) withWorkers() []string {
	var pools []string
	for i := range obs.pools {
		none := slices.ContainsFunc(obs.pools[i].Status.Conditions, func(c hyperv1.NodePoolCondition) bool {
			return c.Type == hyperv1.HostedClusterHibernated && c.Status == corev1.ConditionTrue
		})
		if !none {
			pools = append(pools, obs.pools[i].Name)
		}
	}
	slices.Sort(pools)
	return pools
}

// putsToSleep says whether the control plane is told to sleep. One that was told stays so, whatever becomes of NodePools.
func (obs *observed) putsToSleep(live map[string]string) bool {
	if !obs.hibernation.Active || !obs.hc.DeletionTimestamp.IsZero() {
		return false
	}
	return live[hyperv1.HibernateAnnotation] == "true" || obs.hcp != nil && len(obs.withWorkers()) == 0
}

// hibernated says how far hibernation, or waking from it, is; nil: the cluster is awake.
func hibernated(obs *observed) *metav1.Condition {
	kind := hyperv1.HostedClusterHibernated
	told := obs.hcpCondition(kind)
	var c metav1.Condition
	switch {
	case obs.hibernation.Active && obs.hcp == nil:
		c = conditions.False(kind, hyperv1.WorkersStoppingReason, messageHCPMissing)
	case obs.hibernation.Active && !obs.putsToSleep(obs.hcp.Annotations):
		c = conditions.False(kind, hyperv1.WorkersStoppingReason, "NodePools still have machines, or drain them: "+strings.Join(obs.withWorkers(), ", "))
	case obs.hibernation.Active && (told == nil || told.Reason == hyperv1.WakingReason):
		c = conditions.False(kind, hyperv1.FallingAsleepReason, "the control plane is told to stop")
	case obs.hibernation.Active:
		c = conditions.New(kind, told.Status, told.Reason, told.Message)
		if !obs.hibernation.Until.IsZero() {
			c.Message += fmt.Sprintf("; it wakes at %s", obs.hibernation.Until.UTC().Format(time.RFC3339))
		}
	case told != nil:
		c = conditions.False(kind, hyperv1.WakingReason, told.Message)
		if told.Status == metav1.ConditionTrue {
			c.Message = "the control plane is told to start"
		}
	case obs.hibernation.Invalid:
		c = conditions.False(kind, hyperv1.InvalidHibernateValueReason, fmt.Sprintf("annotation %s is %q, which is neither true or false nor a time: write it like 2027-01-31T12:00:00Z",
			hyperv1.HibernateAnnotation, obs.hc.Annotations[hyperv1.HibernateAnnotation]))
	case obs.hibernation.Problem != "":
		c = conditions.False(kind, hyperv1.InvalidHibernateValueReason, fmt.Sprintf("annotation %s: %s", pause.ScheduleAnnotation, obs.hibernation.Problem))
	default:
		return nil
	}
	return &c
}

// calm gives what a cluster on its way to sleep lacks a reason of its own.
func calm(obs *observed, c metav1.Condition) metav1.Condition {
	if obs.hibernation.Active && c.Status == metav1.ConditionFalse {
		c.Reason, c.Message = hyperv1.HostedClusterHibernated, "the hosted cluster hibernates: `hypershift wake` wakes it"
	}
	return c
}
