package hostedcluster

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/conditions"
)

// gates are what has to be open before a pass makes anything. They are decided once, by setStatus, which reports them; the plan gets them from
// there, and does not read conditions back. The zero value is no decision: nothing may be planned with it.
type gates struct {
	// configuration, supported, release and active are the gates that have a condition of their own. A gate is closed while that is False.
	configuration, supported, release, active metav1.Condition
	// releaseSince is since when the gate of the release is as it is.
	releaseSince time.Time
	// upgrade is why the control plane may not move to the wanted release now; nil: it may, or need not.
	upgrade error
}

// decideGates decides the gates that have conditions.
func decideGates(obs *state.Observed, now time.Time) gates {
	return gates{
		configuration: validConfiguration(obs), supported: supported(obs), release: validReleaseImage(obs),
		active: reconciliationActive(obs.HC.Spec.PausedUntil, now),
	}
}

// reported completes the gates when the conditions of the status have been set.
func (g gates) reported(obs *state.Observed) gates {
	if c := conditions.Get(obs.HC.Status.Conditions, hyperv1.ValidReleaseImage); c != nil {
		g.releaseSince = c.LastTransitionTime.Time
	}
	g.upgrade = upgradeAllowed(obs)
	return g
}

// list are the gates that have conditions, in the order in which a closed one is told.
func (g gates) list() []metav1.Condition {
	return []metav1.Condition{g.configuration, g.supported, g.release, g.active}
}

// open tells that all gates with conditions are.
func (g gates) open() bool { return !slices.ContainsFunc(g.list(), closed) }

func closed(gate metav1.Condition) bool { return gate.Status == metav1.ConditionFalse }
