package status

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/rollup"
)

// Returned is what a rollout says, in its condition Progressing, whose newest template was taken back where it failed. It goes no further by itself.
const Returned = "Failed and returned"

// RollUp sums the conditions of a Package, an ObjectDeployment or a HostedClusterPackage up for tools that know none of them (decision 89). It is called
// once all others are set.
func RollUp(list *[]metav1.Condition, now time.Time, generation int64) {
	reconciling, stalled := rolledUp(*list, generation)
	rollup.Set(list, now, generation, reconciling, stalled)
}

// rolledUp says which condition keeps an object from being settled, as one that gets there or one that somebody has to look at. What is said of an older
// generation counts for nothing.
func rolledUp(list []metav1.Condition, generation int64) (reconciling, stalled *metav1.Condition) {
	said := func(conditionType string) *metav1.Condition {
		if c := conditions.Get(list, conditionType); c != nil && c.ObservedGeneration >= generation {
			return c
		}
		return nil
	}
	is := func(conditionType string, status metav1.ConditionStatus) *metav1.Condition {
		if c := said(conditionType); c != nil && c.Status == status {
			return c
		}
		return nil
	}
	for _, wanted := range []string{v1alpha1.ConditionPaused, v1alpha1.ConditionRemovalHeld} {
		if c := is(wanted, metav1.ConditionTrue); c != nil {
			return c, nil
		}
	}
	if c := is(v1alpha1.ConditionInvalid, metav1.ConditionTrue); c != nil {
		return nil, c
	}
	if c := is(v1alpha1.ConditionUnpacked, metav1.ConditionFalse); c != nil {
		return nil, c
	}
	available, progressing := said(v1alpha1.ConditionAvailable), is(v1alpha1.ConditionProgressing, metav1.ConditionTrue)
	switch {
	case progressing != nil && strings.Contains(progressing.Message, Returned):
		return nil, progressing
	case progressing != nil:
		return progressing, nil
	case available == nil:
		return said(v1alpha1.ConditionUnpacked), nil // it was read, and what it installs has said nothing
	case available.Status == metav1.ConditionFalse:
		return nil, available
	}
	return nil, nil
}
