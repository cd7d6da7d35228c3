package status

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/conditions"
)

// Gates are what has to be open before a pass makes anything. They are decided once, by Set, which reports them; the plan gets them from
// there, and does not read conditions back. The zero value is no decision: nothing may be planned with it.
type Gates struct {
	// Configuration, supported, release and active are the gates that have a condition of their own. A gate is closed while that is False.
	Configuration, Supported, Release, active metav1.Condition
	// ReleaseSince is since when the gate of the release is as it is.
	ReleaseSince time.Time
	// Upgrade is why the control plane may not move to the wanted release now; nil: it may, or need not.
	Upgrade error
}

// decideGates decides the gates that have conditions.
func decideGates(obs *state.Observed, now time.Time) Gates {
	return Gates{
		Configuration: validConfiguration(obs), Supported: supported(obs), Release: validReleaseImage(obs),
		active: ReconciliationActive(obs.HC.Spec.PausedUntil, now),
	}
}

// reported completes the gates when the conditions of the status have been set.
func (g Gates) reported(obs *state.Observed) Gates {
	if c := conditions.Get(obs.HC.Status.Conditions, hyperv1.ValidReleaseImage); c != nil {
		g.ReleaseSince = c.LastTransitionTime.Time
	}
	g.Upgrade = UpgradeAllowed(obs)
	return g
}

// list are the gates that have conditions, in the order in which a closed one is told.
func (g Gates) list() []metav1.Condition {
	return []metav1.Condition{g.Configuration, g.Supported, g.Release, g.active}
}

// Open tells that all gates with conditions are.
func (g Gates) Open() bool { return !slices.ContainsFunc(g.list(), Closed) }

// Closed tells that a gate keeps a pass from making anything.
func Closed(gate metav1.Condition) bool { return gate.Status == metav1.ConditionFalse }

// OthersOpen tells that all other gates are open.
func OthersOpen(obs *state.Observed, now time.Time) bool {
	return decideGates(obs, now).Open() && obs.Target != nil
}
