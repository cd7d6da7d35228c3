package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/scope"
)

// Events tells users about what they would otherwise have to look for in conditions. Its zero value tells nobody.
type Events struct {
	Recorder events.EventRecorder
	Scope    scope.Scope
}

// maxNote is what the API server takes as the text of an event, less room for the sign that some is missing.
const maxNote = 1000

// Tell records an event about an object of a namespaced Go type, and another object that has to do with it, or nil.
func (e Events) Tell(obj, related client.Object, eventType, reason, action, text string) {
	if e.Recorder == nil {
		return
	}
	text = clip.Over(text, maxNote, "…")
	if related == nil {
		e.Recorder.Eventf(e.Scope.Object(obj), nil, eventType, reason, action, "%s", text)
		return
	}
	e.Recorder.Eventf(e.Scope.Object(obj), e.Scope.Object(related), eventType, reason, action, "%s", text)
}

// Transitions records what has become of an object: that it was paused or goes on, and that objects of it were refused. It goes by reasons of
// conditions, so that an object which stays as it is causes no event.
func (e Events) Transitions(obj client.Object, before, after []metav1.Condition) {
	if e.Recorder == nil {
		return
	}
	was, is := reasonOf(before, v1alpha1.ConditionAvailable), conditions.Get(after, v1alpha1.ConditionAvailable)
	if is != nil && is.Reason != was {
		switch is.Reason {
		case v1alpha1.ReasonCollisionDetected:
			e.Tell(obj, nil, corev1.EventTypeWarning, is.Reason, "Adopt", is.Message)
		case v1alpha1.ReasonPreflightError:
			e.Tell(obj, nil, corev1.EventTypeWarning, is.Reason, "RollOut", is.Message)
		}
	}
	switch paused, now := reasonOf(before, v1alpha1.ConditionPaused), reasonOf(after, v1alpha1.ConditionPaused); {
	case now == v1alpha1.ReasonPaused && paused != now:
		e.Tell(obj, nil, corev1.EventTypeNormal, v1alpha1.ReasonPaused, "Pause", "Nothing is written until it is resumed.")
	case now == "" && paused == v1alpha1.ReasonPaused:
		e.Tell(obj, nil, corev1.EventTypeNormal, "Resumed", "Resume", "Objects are written again.")
	}
}

func reasonOf(list []metav1.Condition, conditionType string) string {
	if c := conditions.Get(list, conditionType); c != nil {
		return c.Reason
	}
	return ""
}
