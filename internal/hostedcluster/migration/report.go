package migration

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/patch"
)

// Reasons of events.
const (
	eventStarted            = "PrivateCAPIMigrationStarted"
	eventPhaseCompleted     = "PrivateCAPIMigrationPhaseCompleted"
	eventRolledBack         = "PrivateCAPIMigrationRolledBack"
	eventCompleted          = "PrivateCAPIMigrationCompleted"
	eventHeld               = "PrivateCAPIMigrationHeld"
	eventVerificationFailed = "PrivateCAPIMigrationVerificationFailed"
)

func groupsOf(d Direction) string {
	if d.Private() {
		return "*." + translate.Private
	}
	return "*." + translate.Standard
}

// window is how long nothing could scale or heal, to the second; 0: it could all the time.
func (j Journal) window() time.Duration {
	if j.Suspended == nil || j.Resumed == nil {
		return 0
	}
	return j.Resumed.Sub(*j.Suspended).Round(time.Second)
}

// report writes conditions of moves, and nothing when they are there.
func (c *Controller) report(ctx context.Context, hc *hyperv1.HostedCluster, conds ...metav1.Condition) error {
	if len(conds) == 0 {
		return nil
	}
	before := hc.DeepCopy()
	for i := range conds {
		conds[i].ObservedGeneration = hc.Generation
	}
	conditions.Set(&hc.Status.Conditions, c.Clock.Now(), conds...)
	return patch.Status(ctx, c.Direct, before, hc)
}

// tell makes an event about a move, on the HostedCluster and, for who sees the control plane's namespace only, on the HostedControlPlane.
func (c *Controller) tell(ctx context.Context, hc *hyperv1.HostedCluster, warning bool, reason, text string) {
	if c.Events == nil {
		return
	}
	events.Event(c.Events, hc, warning, reason, "Migrate", text)
	hcp := &hyperv1.HostedControlPlane{}
	if err := c.Direct.Get(ctx, client.ObjectKey{Namespace: names.NamespaceOf(hc), Name: hc.Name}, hcp); err != nil {
		if !apierrors.IsNotFound(err) {
			ctrl.LoggerFrom(ctx).Error(err, "recording an event for the HostedControlPlane", "reason", reason)
		}
		return
	}
	events.Event(c.Events, hcp, warning, reason, "Migrate", text)
}

// progress are the conditions of a move that is under way. The message of the phase's own objects moves in steps, so that a status is not
// written for each.
func progress(j Journal, p Plan) []metav1.Condition {
	if j.Phase.Over() {
		return nil // said once the lock is off
	}
	message := fmt.Sprintf("phase %d/%d", j.Phase.Number(), Last())
	if j.Phase == RollBack {
		message = fmt.Sprintf("Rolling back (%s): %s", j.Failure, j.Message)
	}
	if p.Total > 0 {
		message += fmt.Sprintf(", %d/%d objects", p.Done, p.Total)
	}
	if p.Wait != "" {
		message += "; " + p.Wait
	}
	list := []metav1.Condition{conditions.True(hyperv1.PrivateCAPIMigrationProgressing, string(j.Phase), message)}
	if j.Phase.suspends() {
		return append(list, conditions.True(hyperv1.PrivateCAPIMigrationDegraded, hyperv1.ScalingSuspendedReason,
			"No machine is created, deleted, repaired or approved while the objects of Cluster API are being moved; running machines keep running"))
	}
	return append(list, conditions.False(hyperv1.PrivateCAPIMigrationDegraded, hyperv1.AsExpectedReason, ""))
}

// final are the conditions of a move that is over.
func final(_ *hyperv1.HostedCluster, j Journal) []metav1.Condition {
	fine := conditions.False(hyperv1.PrivateCAPIMigrationDegraded, hyperv1.AsExpectedReason, "")
	if j.Phase == RolledBack {
		return []metav1.Condition{fine, conditions.False(hyperv1.PrivateCAPIMigrationProgressing, hyperv1.MigrationRolledBackReason,
			fmt.Sprintf("Rolled back (%s): %s. Remove annotation %s to try again", j.Failure, j.Message, hyperv1.PrivateCAPIMigrationFailedAnnotation))}
	}
	return []metav1.Condition{fine, conditions.False(hyperv1.PrivateCAPIMigrationProgressing, hyperv1.MigrationCompletedReason,
		fmt.Sprintf("The objects of Cluster API are in %s; machines could not be scaled or repaired for %s", groupsOf(j.Direction), j.window()))}
}

// held is the condition of a move that does not begin.
func held(_ *hyperv1.HostedCluster, message string) metav1.Condition {
	return conditions.False(hyperv1.PrivateCAPIMigrationProgressing, hyperv1.MigrationHeldReason, message)
}

// said tells that the condition has that message already.
func said(hc *hyperv1.HostedCluster, message string) bool {
	c := conditions.Get(hc.Status.Conditions, hyperv1.PrivateCAPIMigrationProgressing)
	return c != nil && c.Message == message
}

// stuck tells that the condition says why the last try of a phase failed. It stays until something else is to be said.
func stuck(hc *hyperv1.HostedCluster, j Journal) bool {
	c := conditions.Get(hc.Status.Conditions, hyperv1.PrivateCAPIMigrationProgressing)
	return c != nil && c.Reason == string(j.Phase) && strings.Contains(c.Message, "; "+trying)
}
