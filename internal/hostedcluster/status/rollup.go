package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/rollup"
)

// stops are conditions that nothing goes on without. The first that is False is told.
var stops = []string{
	hyperv1.ValidHostedClusterConfiguration, hyperv1.SupportedHostedCluster, hyperv1.ValidReleaseImage, hyperv1.ValidHostedControlPlaneConfiguration,
	hyperv1.ValidReleaseInfo, hyperv1.PlatformCredentialsFound,
}

// RollUp sums the conditions up for tools that know none of them (decision 84).
func RollUp(hc *hyperv1.HostedCluster, now time.Time) {
	reconciling, stalled := rolledUp(hc)
	rollup.Set(&hc.Status.Conditions, now, hc.Generation, reconciling, stalled)
}

// rolledUp says which condition keeps a HostedCluster from being settled, as one that gets there or one that somebody has to look at.
func rolledUp(hc *hyperv1.HostedCluster) (reconciling, stalled *metav1.Condition) {
	conds := hc.Status.Conditions
	is := func(conditionType string, status metav1.ConditionStatus) *metav1.Condition {
		if c := conditions.Get(conds, conditionType); c != nil && c.Status == status {
			return c
		}
		return nil
	}
	if c := is(hyperv1.ReconciliationActive, metav1.ConditionFalse); c != nil {
		return c, nil
	}
	for _, stop := range stops {
		if c := is(stop, metav1.ConditionFalse); c != nil {
			return nil, c
		}
	}
	if c := is(hyperv1.HostedClusterProgressing, metav1.ConditionFalse); c != nil && c.Reason == hyperv1.BlockedReason {
		return nil, c
	}
	available := conditions.Get(conds, hyperv1.HostedClusterAvailable)
	switch asleep := is(hyperv1.HostedClusterHibernated, metav1.ConditionTrue); {
	case asleep != nil: // as somebody wants it
		return nil, nil
	case is(hyperv1.HostedClusterHibernated, metav1.ConditionFalse) != nil:
		return is(hyperv1.HostedClusterHibernated, metav1.ConditionFalse), nil
	case available != nil && available.Status == metav1.ConditionFalse && state.HasBeenAvailable(hc):
		return nil, available
	case available != nil && available.Status != metav1.ConditionTrue:
		return available, nil
	}
	if c := is(hyperv1.HostedClusterProgressing, metav1.ConditionTrue); c != nil {
		return c, nil
	}
	return nil, is(hyperv1.HostedClusterDegraded, metav1.ConditionTrue)
}
