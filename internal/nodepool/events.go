package nodepool

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
)

// Reasons of events that are no reasons of conditions.
const (
	eventVersionUpdated  = "VersionUpdated"
	eventConfigUpdated   = "ConfigUpdated"
	eventResumed         = "ReconciliationResumed"
	eventDeletionBlocked = "DeletionBlocked"
)

// Removing machines takes minutes, with time for pods to move. What takes longer is told, and again while it lasts.
const (
	deletionSlow  = 10 * time.Minute
	deletionAgain = 10 * time.Minute
)

// eventRules are what is told of conditions.
var eventRules = []events.Rule{
	invalid(hyperv1.NodePoolValidReleaseImageConditionType), invalid(hyperv1.NodePoolValidMachineConfigConditionType),
	invalid(hyperv1.NodePoolValidTuningConfigConditionType), invalid(hyperv1.NodePoolValidPlatformConfigConditionType),
	invalid(hyperv1.NodePoolValidMachineTemplateConditionType), invalid(hyperv1.NodePoolSupportedVersionSkewConditionType), invalid(hyperv1.AllFieldsHeeded),
	{Condition: hyperv1.NodePoolValidGeneratedPayloadConditionType, Status: metav1.ConditionFalse, Warning: true, Action: "Validate", Lost: true},
	{Condition: hyperv1.NodePoolReconciliationActiveConditionType, Status: metav1.ConditionFalse, Action: "Pause", Over: eventResumed},
	{Condition: hyperv1.NodePoolReconciliationActiveConditionType, Status: metav1.ConditionTrue, Reason: hyperv1.InvalidPausedUntilValueReason, Warning: true, Action: "Pause"},
	{Condition: hyperv1.NodePoolUpdatingVersionConditionType, Status: metav1.ConditionTrue, Action: "RollOut", Begins: hyperv1.NodePoolUpdatingVersionConditionType, Over: eventVersionUpdated},
	{Condition: hyperv1.NodePoolUpdatingConfigConditionType, Status: metav1.ConditionTrue, Action: "RollOut", Begins: hyperv1.NodePoolUpdatingConfigConditionType, Over: eventConfigUpdated},
	{Condition: hyperv1.NodePoolUnrequestedRolloutConditionType, Status: metav1.ConditionTrue, Warning: true, Action: "RollOut"},
	{Condition: hyperv1.NodePoolAllNodesHealthyConditionType, Status: metav1.ConditionFalse, Warning: true, Action: "Watch", Lost: true, Over: hyperv1.NodePoolAllNodesHealthyConditionType},
}

func invalid(condition string) events.Rule {
	return events.Rule{Condition: condition, Status: metav1.ConditionFalse, Warning: true, Action: "Validate", Over: condition}
}

// tellChanges makes events of what a status that was just written says anew.
func tellChanges(to events.Recorder, before, after *hyperv1.NodePool) {
	events.Transitions(to, after, eventRules, asConditions(before.Status.Conditions), asConditions(after.Status.Conditions))
}

// asConditions are what the kind's own type of conditions has in common with all others.
func asConditions(list []hyperv1.NodePoolCondition) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(list))
	for _, c := range list {
		out = append(out, conditions.New(c.Type, metav1.ConditionStatus(c.Status), c.Reason, c.Message))
	}
	return out
}

// dated are conditions with the time of their last transition.
func dated(list []hyperv1.NodePoolCondition) []metav1.Condition {
	out := asConditions(list)
	for i := range out {
		out[i].LastTransitionTime = list[i].LastTransitionTime
	}
	return out
}

// tellSlowDeletion says what a deletion waits for that takes longer than it should.
func (r *Reconciler) tellSlowDeletion(pool *hyperv1.NodePool, waiting string) {
	now := r.Clock.Now()
	age := now.Sub(pool.DeletionTimestamp.Time)
	if r.Events == nil || age < deletionSlow || !r.toldDeletions.Allow(string(pool.UID), now, deletionAgain) {
		return
	}
	events.Event(r.Events, pool, true, eventDeletionBlocked, "Delete", fmt.Sprintf("After %s: %s", age.Truncate(time.Second), waiting))
}
