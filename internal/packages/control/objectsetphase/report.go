package objectsetphase

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/control/objectset"
	"hcp.internal/platform/internal/packages/engine/phase"
)

const (
	messageAvailable = "Object is available and passes all probes."
	messagePaused    = "Lifecycle state set to paused."
)

// report turns what a pass found out into a status.
func report(osp *v1alpha1.ObjectSetPhase, result phase.Result, now time.Time) {
	status := &osp.Status
	refused := len(result.Violations) > 0
	if !refused {
		status.ControllerOf = result.ControllerOf()
	}
	if osp.Spec.Paused || refused {
		objectset.KeepMapped(status.Conditions, osp.Generation)
	} else {
		objectset.SetMapped(&status.Conditions, result.Conditions(), now)
	}
	set := func(c metav1.Condition) {
		c.ObservedGeneration = osp.Generation
		conditions.Set(&status.Conditions, now, c)
	}
	if result.Complete() {
		set(phase.Condition(v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonAvailable, messageAvailable))
	} else {
		set(phase.Condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, v1alpha1.ReasonProbeFailure, describe(osp, result)))
	}
	if osp.Spec.Paused {
		set(phase.Condition(v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused, messagePaused))
	} else {
		conditions.Remove(&status.Conditions, v1alpha1.ConditionPaused)
	}
}

// describe says how every object of the phase is, for people.
func describe(osp *v1alpha1.ObjectSetPhase, result phase.Result) string {
	var b strings.Builder
	inTransition := false
	for _, o := range result.Objects {
		inTransition = inTransition || o.Action == phase.ActionProgressed
	}
	fmt.Fprintf(&b, "Phase %q\nComplete: %t\nIn Transition: %t\n", osp.Name, result.Complete(), inTransition)
	if len(result.Violations) > 0 {
		b.WriteString("Validation Errors:\n")
		for _, v := range result.Violations {
			fmt.Fprintf(&b, "- %s\n", v)
		}
	}
	b.WriteString("Objects:\n")
	paused := ""
	if osp.Spec.Paused {
		paused = " (PAUSED)"
	}
	for _, o := range result.Objects {
		version := strings.TrimPrefix(o.Kind.GroupVersion().String(), "/")
		fmt.Fprintf(&b, "- Object %s.%s %s\n  Action%s: %q\n", o.Kind.Kind, version, o.Key(), paused, o.Action)
		if o.Collision != "" {
			fmt.Fprintf(&b, "  %s\n", o.Collision)
		}
		state := "Succeeded"
		if len(o.Failures) > 0 {
			state = "Failed"
		}
		fmt.Fprintf(&b, "  Probes:\n  - Progress: %s\n", state)
		for _, f := range o.Failures {
			fmt.Fprintf(&b, "    - %s\n", f)
		}
	}
	return b.String()
}
