package state

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/trouble"
)

// WithWorkers are the NodePools that still have machines, or have not said that they have none.
func (obs *Observed) WithWorkers() []string {
	var pools []string
	for i := range obs.Pools {
		none := slices.ContainsFunc(obs.Pools[i].Status.Conditions, func(c hyperv1.NodePoolCondition) bool {
			return c.Type == hyperv1.HostedClusterHibernated && c.Status == corev1.ConditionTrue
		})
		if !none {
			pools = append(pools, obs.Pools[i].Name)
		}
	}
	slices.Sort(pools)
	return pools
}

// PutsToSleep says whether the control plane is told to sleep. One that was told stays so, whatever becomes of NodePools.
func (obs *Observed) PutsToSleep(live map[string]string) bool {
	if !obs.Hibernation.Active || !obs.HC.DeletionTimestamp.IsZero() {
		return false
	}
	return live[hyperv1.HibernateAnnotation] == "true" || obs.HCP != nil && len(obs.WithWorkers()) == 0
}

// OperatorTrouble says why there is no control-plane-operator to say how the control plane is; nil: there is, or may be in a moment.
func (obs *Observed) OperatorTrouble() *trouble.Trouble {
	return trouble.Of(obs.Troubles, names.ControlPlaneOperator)
}

// RolloutTrouble is what keeps a release from being rolled out, as reason and message; no reason: nothing that is known.
func (obs *Observed) RolloutTrouble() (reason, message string) {
	if t := obs.OperatorTrouble(); t != nil {
		return t.Reason, t.Message
	}
	c := obs.HCPCondition(hyperv1.ClusterVersionProgressing)
	if c == nil || c.Status != metav1.ConditionTrue || !slices.Contains(trouble.Reasons(), c.Reason) {
		return "", ""
	}
	return c.Reason, c.Message
}
