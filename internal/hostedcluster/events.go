package hostedcluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/events"
)

// Reasons of events that are no reasons of conditions.
const (
	eventRolloutStarted   = "RolloutStarted"
	eventRolloutCompleted = "RolloutCompleted"
	eventResumed          = "ReconciliationResumed"
	eventDeletionBlocked  = "DeletionBlocked"
)

// Deletions end within a minute as a rule. What takes longer is told, and again while it lasts.
const (
	deletionSlow  = 3 * time.Minute
	deletionAgain = 10 * time.Minute
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

// tellChanges makes events of what a status that was just written says anew.
func tellChanges(to events.Recorder, before, after *hyperv1.HostedCluster) {
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

// clusterOf finds whose control plane an object belongs to, so that what is wrong with it is told of the HostedCluster, too.
func clusterOf(reader client.Reader) func(ctx context.Context, obj client.Object) *corev1.ObjectReference {
	return func(ctx context.Context, obj client.Object) *corev1.ObjectReference {
		ns, hc := &corev1.Namespace{}, &hyperv1.HostedCluster{}
		if reader.Get(ctx, client.ObjectKey{Name: obj.GetNamespace()}, ns) != nil {
			return nil
		}
		key, ok := names.ParseBackReference(ns.Annotations[hyperv1.HostedClusterAnnotation])
		if !ok || reader.Get(ctx, key, hc) != nil {
			return nil
		}
		return &corev1.ObjectReference{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster", Namespace: key.Namespace, Name: key.Name, UID: hc.UID}
	}
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

// tellSlowDeletion says what a deletion waits for that takes longer than it should.
func (r *Reconciler) tellSlowDeletion(hc *hyperv1.HostedCluster, waiting []string) {
	now := r.Clock.Now()
	age := now.Sub(hc.DeletionTimestamp.Time)
	if r.Events == nil || age < deletionSlow || len(waiting) == 0 || !r.toldDeletions.Allow(string(hc.UID), now, deletionAgain) {
		return
	}
	events.Event(r.Events, hc, true, eventDeletionBlocked, "Delete", fmt.Sprintf("After %s, waiting for %s", age.Truncate(time.Second), strings.Join(waiting, ", ")))
}
