package state

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/karpenter"
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

// goesToSleep says whether the cluster is to sleep now. One that is deleted wakes for that.
func (obs *Observed) goesToSleep() bool {
	return obs.Hibernation.Active && obs.HC.DeletionTimestamp.IsZero()
}

// PutsToSleep says whether the control plane is told to sleep. One that was told stays so, whatever becomes of NodePools.
func (obs *Observed) PutsToSleep(live map[string]string) bool {
	if !obs.goesToSleep() {
		return false
	}
	return live[hyperv1.HibernateAnnotation] == "true" || obs.HCP != nil && obs.Awake() == ""
}

// Awake says what still has workers, or has not said that it has none; empty: nothing.
func (obs *Observed) Awake() string {
	var list []string
	if pools := obs.WithWorkers(); len(pools) > 0 {
		list = append(list, "NodePools still have machines, or drain them: "+strings.Join(pools, ", "))
	}
	if obs.withKarpenter() {
		text := "Karpenter is being removed until the cluster wakes"
		if n := ptr.Deref(obs.HCP.Status.AutoNode.NodeClaimCount, 0); n > 0 {
			text += fmt.Sprintf(", after its machines are drained and gone, of which there are %d: `kubectl get nodeclaims` in the hosted cluster shows them", n)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// withKarpenter says whether there may be Karpenter, which leaves after its machines. On other platforms it has none that it would remove.
func (obs *Observed) withKarpenter() bool {
	return obs.HCP != nil && obs.HCP.Spec.Platform.Type == hyperv1.LocalPlatform && karpenter.Concerns(obs.HCP)
}

// AutoNode is what is passed on of spec.autoNode. Nobody asks for Karpenter in a cluster that sleeps, so that its machines go.
func (obs *Observed) AutoNode(spec *hyperv1.AutoNode) *hyperv1.AutoNode {
	if obs.goesToSleep() && karpenter.Asked(spec) {
		return nil
	}
	return spec
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
