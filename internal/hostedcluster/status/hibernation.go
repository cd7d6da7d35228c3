package status

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
)

// A cluster falls asleep from its edges: NodePools and Karpenter give up their machines, then the control plane is told, which stops everything but its operators.
// On the way back the control plane comes first, and machines are made when it serves.

// hibernated says how far hibernation, or waking from it, is; nil: the cluster is awake.
func hibernated(obs *state.Observed) *metav1.Condition {
	kind := hyperv1.HostedClusterHibernated
	told := obs.HCPCondition(kind)
	var c metav1.Condition
	switch {
	case obs.Hibernation.Active && obs.HCP == nil:
		c = conditions.False(kind, hyperv1.WorkersStoppingReason, messageHCPMissing)
	case obs.Hibernation.Active && !obs.PutsToSleep(obs.HCP.Annotations):
		c = conditions.False(kind, hyperv1.WorkersStoppingReason, obs.Awake())
	case obs.Hibernation.Active && (told == nil || told.Reason == hyperv1.WakingReason):
		c = conditions.False(kind, hyperv1.FallingAsleepReason, "the control plane is stopping")
	case obs.Hibernation.Active:
		c = conditions.New(kind, told.Status, told.Reason, told.Message)
		if !obs.Hibernation.Until.IsZero() {
			c.Message += fmt.Sprintf("; it wakes at %s", obs.Hibernation.Until.UTC().Format(time.RFC3339))
		}
	case told != nil:
		c = conditions.False(kind, hyperv1.WakingReason, told.Message)
		if told.Status == metav1.ConditionTrue {
			c.Message = "the control plane is starting"
		}
	case obs.Hibernation.Invalid:
		c = conditions.False(kind, hyperv1.InvalidHibernateValueReason, fmt.Sprintf("annotation %s is %q, which is neither true or false nor a time: write it like 2027-01-31T12:00:00Z",
			hyperv1.HibernateAnnotation, obs.HC.Annotations[hyperv1.HibernateAnnotation]))
	case obs.Hibernation.Problem != "":
		c = conditions.False(kind, hyperv1.InvalidHibernateValueReason, fmt.Sprintf("annotation %s: %s", pause.ScheduleAnnotation, obs.Hibernation.Problem))
	default:
		return nil
	}
	return &c
}

// calm gives what a cluster on its way to sleep lacks a reason of its own.
func calm(obs *state.Observed, c metav1.Condition) metav1.Condition {
	if obs.Hibernation.Active && c.Status == metav1.ConditionFalse {
		c.Reason, c.Message = hyperv1.HostedClusterHibernated, "the hosted cluster hibernates: `hypershift wake` wakes it"
	}
	return c
}

// resting takes back that a release is not rolled out while the cluster sleeps, falls asleep or wakes: nothing that rolls out is to run then. sleep is condition
// Hibernated, nil while the cluster is awake. That the condition turns False anew afterwards begins the time after which an upgrade counts as failed (decision 83).
func resting(sleep *metav1.Condition, c metav1.Condition) metav1.Condition {
	if sleep == nil || sleep.Reason == hyperv1.InvalidHibernateValueReason || c.Type != hyperv1.ClusterVersionSucceeding || c.Status != metav1.ConditionFalse {
		return c
	}
	return conditions.Unknown(c.Type, hyperv1.HostedClusterHibernated, "the hosted cluster is not awake. Before it is, this counts for nothing: "+c.Message)
}
