package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/events"
)

// eventRules are what is told of conditions. What the control-plane-operator tells of the HostedControlPlane is not told twice.
var eventRules = []events.Rule{
	invalid(hyperv1.ValidHostedClusterConfiguration), invalid(hyperv1.SupportedHostedCluster), invalid(hyperv1.ValidReleaseImage),
	invalid(hyperv1.ValidProxyConfiguration), invalid(hyperv1.PlatformCredentialsFound), invalid(hyperv1.ValidOIDCConfiguration), invalid(hyperv1.AllFieldsHeeded),
	{Condition: hyperv1.ReconciliationActive, Status: metav1.ConditionFalse, Action: "Pause", Over: eventResumed},
	{Condition: hyperv1.ControlPlaneAdmitted, Status: metav1.ConditionFalse, Warning: true, Action: "Admit", Over: hyperv1.ControlPlaneAdmitted},
	{Condition: hyperv1.ReconciliationActive, Status: metav1.ConditionTrue, Reason: hyperv1.InvalidPausedUntilValueReason, Warning: true, Action: "Pause"},
	{Condition: hyperv1.HostedClusterProgressing, Status: metav1.ConditionFalse, Reason: hyperv1.BlockedReason, Warning: true, Action: "RollOut"},
	{Condition: hyperv1.HostedClusterAvailable, Status: metav1.ConditionFalse, Warning: true, Action: "Serve", Lost: true, Over: hyperv1.HostedClusterAvailable},
	{Condition: upgrades.Returned, Status: metav1.ConditionTrue, Warning: true, Action: "RollOut"},
	{Condition: hyperv1.ClusterVersionSucceeding, Status: metav1.ConditionFalse, Warning: true, Action: "RollOut", Lost: true},
}

func invalid(condition string) events.Rule {
	return events.Rule{Condition: condition, Status: metav1.ConditionFalse, Warning: true, Action: "Validate", Over: condition}
}

// Tell makes events of what a status that was just written says anew.
func Tell(to events.Recorder, before, after *hyperv1.HostedCluster) {
	events.Transitions(to, after, eventRules, before.Status.Conditions, after.Status.Conditions)
	was, is := state.Newest(before.Status.Version), state.Newest(after.Status.Version)
	switch {
	case is.Image == "", resolved(was, is):
	case is.Image != was.Image || !is.StartedTime.Equal(&was.StartedTime):
		events.Event(to, after, false, eventRolloutStarted, "RollOut", "Rolling out release "+named(is))
	case is.State == configv1.CompletedUpdate && was.State != is.State:
		events.Event(to, after, false, eventRolloutCompleted, "RollOut", fmt.Sprintf("Release %s is rolled out%s", named(is), took(is)))
	}
}

// resolved tells that the control plane has named the release whose rollout was told already by its digest, and when it began itself.
func resolved(was, is configv1.UpdateHistory) bool {
	return was.State == configv1.PartialUpdate && is.State == configv1.PartialUpdate && was.Version != "" && was.Version == is.Version
}

func named(h configv1.UpdateHistory) string {
	if h.Version == "" {
		return h.Image
	}
	return h.Version
}

func took(h configv1.UpdateHistory) string {
	if h.CompletionTime == nil {
		return ""
	}
	return fmt.Sprintf(" after %s", h.CompletionTime.Sub(h.StartedTime.Time))
}

// Reasons of events that are no reasons of conditions.
const (
	eventRolloutStarted   = "RolloutStarted"
	eventRolloutCompleted = "RolloutCompleted"
	eventResumed          = "ReconciliationResumed"
)
