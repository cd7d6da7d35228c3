package objectset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/phase"
)

// Messages of conditions that users' tools know.
const (
	messageAvailable       = "Object is available and passes all probes."
	messageInTransition    = "ObjectSet is still rolling out or is being replaced by a newer version."
	messageSucceeded       = "ObjectSet rolled out all objects successfully and was Available at least once."
	messagePaused          = "Lifecycle state set to paused."
	messagePartiallyPaused = "Waiting for ObjectSetPhases."
	messageArchiving       = "Object teardown in progress."
)

// report turns what a pass found out into a status.
func (out observed) report(os *v1alpha1.ObjectSet, now time.Time) {
	status := &os.Status
	status.ControllerOf = out.controllerOf
	status.RemotePhases = out.remote
	if out.keepMapped {
		KeepMapped(status.Conditions, os.Generation)
	} else {
		SetMapped(&status.Conditions, out.mapped, now)
	}
	set := func(c metav1.Condition) {
		c.ObservedGeneration = os.Generation
		conditions.Set(&status.Conditions, now, c)
	}
	set(out.available())
	inTransition := !out.refused() && !ContainsAll(out.controllerOf, out.objects)
	if inTransition {
		set(phase.Condition(v1alpha1.ConditionInTransition, metav1.ConditionTrue, v1alpha1.ReasonInTransition, messageInTransition))
	} else if !out.refused() {
		conditions.Remove(&status.Conditions, v1alpha1.ConditionInTransition)
	}
	if paused := out.paused(os.Spec.LifecycleState); paused != nil {
		set(*paused)
	} else {
		conditions.Remove(&status.Conditions, v1alpha1.ConditionPaused)
	}
	if !inTransition && out.successIn(os, now) == 0 && out.succeeds() {
		set(phase.Condition(v1alpha1.ConditionSucceeded, metav1.ConditionTrue, v1alpha1.ReasonRolloutSuccess, messageSucceeded))
	}
}

// refused says whether the pass ended before it knew how the objects are.
func (out observed) refused() bool { return len(out.violations) > 0 || len(out.collisions) > 0 }

func (out observed) succeeds() bool { return !out.refused() && out.failure == "" }

func (out observed) available() metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return phase.Condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, reason, message)
	}
	switch {
	case len(out.violations) > 0:
		var texts []string
		for _, v := range out.violations {
			texts = append(texts, v.String())
		}
		return no(v1alpha1.ReasonPreflightError, strings.Join(texts, ", "))
	case len(out.collisions) > 0:
		var texts []string
		for _, c := range out.collisions {
			texts = append(texts, fmt.Sprintf("object %s kind:%s: %s", c.Key(), c.Kind.Kind, c.Collision))
		}
		return no(v1alpha1.ReasonCollisionDetected, strings.Join(texts, ", "))
	case out.failure != "":
		return no(v1alpha1.ReasonProbeFailure, out.failure)
	}
	return phase.Condition(v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAvailable, messageAvailable)
}

// paused is nil when the revision is not.
func (out observed) paused(state v1alpha1.LifecycleState) *metav1.Condition {
	c := phase.Condition(v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused, messagePaused)
	want := state == v1alpha1.LifecycleStatePaused
	behind := out.remotePaused
	if want {
		behind = out.remoteActive
	}
	switch {
	case behind > 0:
		c = phase.Condition(v1alpha1.ConditionPaused, metav1.ConditionUnknown, v1alpha1.ReasonPartiallyPaused, messagePartiallyPaused)
	case !want:
		return nil
	}
	return &c
}

// successIn is how long the revision must still be available until it counts as having succeeded; 0 when it may now.
func (out observed) successIn(os *v1alpha1.ObjectSet, now time.Time) time.Duration {
	delay := time.Duration(os.Spec.SuccessDelaySeconds) * time.Second
	available := conditions.Get(os.Status.Conditions, v1alpha1.ConditionAvailable)
	if delay <= 0 || available == nil || available.Status != metav1.ConditionTrue {
		return 0
	}
	return max(0, available.LastTransitionTime.Add(delay).Sub(now))
}

// recheckAfter is when something changes that no event tells of; 0 for never.
func (out observed) recheckAfter(os *v1alpha1.ObjectSet, now time.Time) time.Duration {
	if out.refused() {
		return retryRefused
	}
	if out.succeeds() && !conditions.IsTrue(os.Status.Conditions, v1alpha1.ConditionSucceeded) {
		return out.successIn(os, now)
	}
	if out.late {
		return phase.PollLate
	}
	return 0
}

// SetMapped replaces all mapped conditions, which are those with a slash in their type.
func SetMapped(list *[]metav1.Condition, mapped []metav1.Condition, now time.Time) {
	*list = slices.DeleteFunc(*list, func(c metav1.Condition) bool {
		return strings.Contains(c.Type, "/") && !slices.ContainsFunc(mapped, func(m metav1.Condition) bool { return m.Type == c.Type })
	})
	conditions.Set(list, now, mapped...)
}

// KeepMapped says of all mapped conditions that they are about a generation: those that are about another count for nothing.
func KeepMapped(list []metav1.Condition, generation int64) {
	for i := range list {
		if strings.Contains(list[i].Type, "/") {
			list[i].ObservedGeneration = generation
		}
	}
}

// Mapped returns the mapped conditions that were made for a generation, with another one.
func Mapped(list []metav1.Condition, of, generation int64) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range list {
		if strings.Contains(c.Type, "/") && c.ObservedGeneration == of {
			c.ObservedGeneration = generation
			out = append(out, c)
		}
	}
	return out
}

// ContainsAll says whether every object is among those that are controlled. The namespace of a cluster-scoped one may be missing.
func ContainsAll(controlled, objects []v1alpha1.ControlledObjectReference) bool {
	have := make(map[v1alpha1.ControlledObjectReference]struct{}, len(controlled))
	for _, ref := range controlled {
		ref.Version = ""
		have[ref] = struct{}{}
	}
	for _, ref := range objects {
		if _, ok := have[ref]; ok {
			continue
		}
		ref.Namespace = ""
		if _, ok := have[ref]; !ok {
			return false
		}
	}
	return true
}

// report writes the status once, if it differs.
func (r *Reconciler) report(ctx context.Context, os *v1alpha1.ObjectSet, change func(*v1alpha1.ObjectSet)) error {
	before := *os.Status.DeepCopy()
	os.Status.Revision = os.Spec.Revision
	change(os)
	if err := r.Status.Patch(ctx, os, before, os.Status); err != nil {
		return err
	}
	if os.Spec.LifecycleState != v1alpha1.LifecycleStateArchived {
		r.Events.Transitions(os, before.Conditions, os.Status.Conditions)
	}
	return nil
}
