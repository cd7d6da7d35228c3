package objectdeployment

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/control/objectset"
	"hcp.internal/platform/internal/packages/engine/phase"
	statusof "hcp.internal/platform/internal/packages/engine/status"
)

// messageNoPhases is also what a Package says that renders to no object.
const messageNoPhases = "The template has no phases, so nothing is rolled out, and what was before stays: give it objects. If a Package made it, see which of its objects " +
	"the conditions of its manifest and its configuration leave out."

// report writes what was observed into the deployment's status.
func (o observed) report(kindOfSets string, now time.Time) {
	d := o.deployment
	status := &d.Status
	status.TemplateHash = o.hash
	status.ControllerOf = nil
	for _, os := range o.sets {
		status.ControllerOf = append(status.ControllerOf, v1alpha1.ControlledObjectReference{
			Kind: kindOfSets, Group: v1alpha1.GroupVersion.Group, Name: os.Name, Namespace: os.Namespace,
		})
	}
	set := func(c *metav1.Condition) {
		if c != nil {
			c.ObservedGeneration = d.Generation
			conditions.Set(&status.Conditions, now, *c)
		}
	}
	current := o.current()
	if current != nil {
		status.Revision = current.Spec.Revision
		objectset.SetMapped(&status.Conditions, objectset.Mapped(current.Status.Conditions, current.Generation, d.Generation), now)
	} else if len(o.sets) > 0 {
		status.Revision = o.sets[len(o.sets)-1].Spec.Revision
	}
	progressing := o.progressing()
	set(&progressing)
	set(o.available())
	if paused := o.paused(); paused != nil {
		set(paused)
	} else {
		conditions.Remove(&status.Conditions, v1alpha1.ConditionPaused)
	}
	statusof.RollUp(&status.Conditions, now, d.Generation)
}

func (o observed) progressing() metav1.Condition {
	yes := func(reason, message string) metav1.Condition {
		return phase.Condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, reason, message)
	}
	current := o.current()
	if current == nil && o.refused != "" {
		return yes(v1alpha1.ReasonProgressing, fmt.Sprintf("No new ObjectSet can be made, which is tried again: %.1000s", o.refused))
	}
	if current == nil && len(o.deployment.Spec.Template.Spec.Phases) == 0 {
		return yes(v1alpha1.ReasonProgressing, messageNoPhases)
	}
	if current == nil {
		return yes(v1alpha1.ReasonProgressing, "Progressing to a new ObjectSet.")
	}
	if conditions.IsTrue(current.Status.Conditions, v1alpha1.ConditionSucceeded) {
		return phase.Condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonIdle, "Update concluded.")
	}
	message := "Latest Revision Status Unknown"
	if c := conditions.Get(current.Status.Conditions, v1alpha1.ConditionAvailable); c != nil {
		message = "Latest Revision is Available: pending success delay period"
		if c.Status == metav1.ConditionFalse {
			message = "Latest Revision is Unavailable: " + c.Message
		}
	}
	return yes(v1alpha1.ReasonLatestRevisionPendingSuccess, message)
}

// available is nil when it stays as it is: the newest revision has not said enough yet.
func (o observed) available() *metav1.Condition {
	current := o.current()
	if current != nil {
		c := conditions.Get(current.Status.Conditions, v1alpha1.ConditionAvailable)
		succeeded := conditions.IsTrue(current.Status.Conditions, v1alpha1.ConditionSucceeded)
		switch {
		case succeeded && c != nil && c.Status == metav1.ConditionTrue:
			out := phase.Condition(v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAvailable, "Latest Revision is Available.")
			return &out
		case !succeeded && (c == nil || c.Status != metav1.ConditionFalse):
			return nil
		}
	}
	out := phase.Condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, v1alpha1.ReasonObjectSetUnready, "No ObjectSet is available.")
	for _, os := range o.previous() {
		c := conditions.Get(os.Status.Conditions, v1alpha1.ConditionAvailable)
		if available(os) && c.ObservedGeneration == os.Generation {
			out = phase.Condition(v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAvailable,
				fmt.Sprintf("Previous Revision '%s' is still Available.", os.Name))
			break
		}
	}
	return &out
}

// paused is nil when the newest revision is not.
func (o observed) paused() *metav1.Condition {
	message := "Lifecycle state set to paused."
	if len(o.sets) == 0 {
		if !o.deployment.Spec.Paused {
			return nil
		}
	} else {
		c := conditions.Get(o.sets[len(o.sets)-1].Status.Conditions, v1alpha1.ConditionPaused)
		if c == nil || c.Status != metav1.ConditionTrue {
			return nil
		}
		message = c.Message
	}
	out := phase.Condition(v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused, "Latest revision is paused: "+message)
	return &out
}

func (r *Reconciler) report(ctx context.Context, before, after *v1alpha1.ObjectDeployment) error {
	if err := r.Status.Patch(ctx, after, before.Status, after.Status); err != nil {
		return err
	}
	r.Events.Transitions(after, before.Status.Conditions, after.Status.Conditions)
	return nil
}
