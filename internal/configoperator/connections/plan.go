package connections

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

const (
	// stale is how old the newest sign of life of a node may be.
	stale = 5 * time.Minute
	// again is how long after a good pass the next one comes; sooner is for one that found something wrong.
	again, sooner = time.Minute, 15 * time.Second
)

// Observed is everything that the conditions are computed from.
type Observed struct {
	Nodes bool // the hosted cluster has any
	// Agents is how many konnectivity agents were seen running, up to agentsToTry; LogsRead that one's log could be read.
	Agents   int
	LogsRead bool
	// Renewed is when a node last renewed its lease; zero: never.
	Renewed time.Time
	// Failed is why the hosted API could not be asked; nothing else is known then.
	Failed error
}

// Plan is what to report, and when to look again.
type Plan struct {
	Conditions   []metav1.Condition
	RecheckAfter time.Duration
}

// planFor computes both conditions. They are Unknown while there is nothing to find out from.
func planFor(obs Observed, generation int64, now time.Time) Plan {
	p := Plan{Conditions: []metav1.Condition{dataPlane(obs), controlPlane(obs, now)}, RecheckAfter: again}
	for i := range p.Conditions {
		p.Conditions[i].ObservedGeneration = generation
		if obs.Nodes && p.Conditions[i].Status != metav1.ConditionTrue {
			p.RecheckAfter = sooner
		}
	}
	return p
}

func dataPlane(obs Observed) metav1.Condition {
	c := metav1.Condition{Type: hyperv1.DataPlaneConnectionAvailable}
	switch {
	case obs.Failed != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, hyperv1.StatusUnknownReason, "the hosted API does not answer"
	case !obs.Nodes:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, hyperv1.NoWorkerNodesAvailableReason, "there are no nodes to reach"
	case obs.Agents == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, hyperv1.KonnectivityAgentPodsNotFoundReason, "no pod of DaemonSet kube-system/konnectivity-agent runs in the hosted cluster"
	case !obs.LogsRead:
		c.Status, c.Reason = metav1.ConditionFalse, hyperv1.LogsAccessFailedReason
		c.Message = fmt.Sprintf("logs of none of %d konnectivity agents can be read: kube-apiserver doesn't reach their nodes", obs.Agents)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage
	}
	return c
}

func controlPlane(obs Observed, now time.Time) metav1.Condition {
	c := metav1.Condition{Type: hyperv1.ControlPlaneConnectionAvailable}
	switch {
	case obs.Failed != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, hyperv1.StatusUnknownReason, "the hosted API does not answer"
	case !obs.Nodes:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, hyperv1.NoWorkerNodesAvailableReason, "there are no nodes to hear from"
	case obs.Renewed.IsZero():
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, hyperv1.KASAccessFailedReason, "no node has renewed its Lease in namespace kube-node-lease"
	case now.Sub(obs.Renewed) > stale:
		c.Status, c.Reason = metav1.ConditionFalse, hyperv1.ConnectionCheckStaleReason
		c.Message = fmt.Sprintf("no node has renewed its Lease since %s", obs.Renewed.UTC().Format(time.RFC3339))
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage
	}
	return c
}
