// Package events makes events of what became of an object, for those who look at it with kubectl describe.
//
// Events go by transitions of conditions: an object that stays as it is causes none. Callers tell after the status was written, so that
// a write which is lost and repeated tells once.
package events

import (
	"cmp"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/conditions"
)

// maxNote is what the API server takes as the text of an event, less room for the sign that some is missing.
const maxNote = 1000

// Recorder is what is needed of an events.EventRecorder. That one counts repetitions instead of writing each.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any)
}

// Rule says which status of a condition is told.
type Rule struct {
	Condition string
	Status    metav1.ConditionStatus
	// Reason, if any, is the only one that counts.
	Reason string
	// Warning says that somebody should look at it.
	Warning bool
	// Action is what was being done, in a word.
	Action string
	// Lost tells only when the condition had the opposite status before: many begin as False while things start.
	Lost bool
	// Begins, if any, is the reason of the event instead of that of the condition, which may say nothing.
	Begins string
	// Over, if any, is the reason of the event that tells the end of it.
	Over string
}

// Transitions tells what the rules say about the way from before to after. A nil recorder tells nobody.
func Transitions(to Recorder, obj runtime.Object, rules []Rule, before, after []metav1.Condition) {
	if to == nil {
		return
	}
	for _, r := range rules {
		was, is := conditions.Get(before, r.Condition), conditions.Get(after, r.Condition)
		switch {
		case r.begins(was, is):
			Event(to, obj, r.Warning, cmp.Or(r.Begins, is.Reason), r.Action, is.Message)
		case r.Over != "" && r.holds(was) && is != nil && is.Status == opposite(r.Status):
			Event(to, obj, false, r.Over, r.Action, is.Message)
		}
	}
}

func (r Rule) holds(c *metav1.Condition) bool {
	return c != nil && c.Status == r.Status && (r.Reason == "" || c.Reason == r.Reason)
}

// begins: the status is new, or it is there for another reason than before.
func (r Rule) begins(was, is *metav1.Condition) bool {
	if !r.holds(is) {
		return false
	}
	if r.Lost {
		return was != nil && was.Status == opposite(r.Status)
	}
	return !r.holds(was) || was.Reason != is.Reason
}

func opposite(s metav1.ConditionStatus) metav1.ConditionStatus {
	if s == metav1.ConditionTrue {
		return metav1.ConditionFalse
	}
	return metav1.ConditionTrue
}

// Event tells one thing. A nil recorder tells nobody.
func Event(to Recorder, obj runtime.Object, warning bool, reason, action, text string) {
	if to == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	if text == "" {
		text = reason
	}
	to.Eventf(obj, nil, kind, reason, action, "%s", clip.Over(text, maxNote, "…"))
}

// Limiter keeps what goes on for long from being told all the time. Losing it costs an event more. The zero value is ready.
type Limiter struct {
	mu   sync.Mutex
	told map[string]time.Time
}

// Allow says whether key was not told within every before now, and takes it for told then.
func (l *Limiter) Allow(key string, now time.Time, every time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, at := range l.told {
		if now.Sub(at) >= every {
			delete(l.told, k) // so that it does not grow with what is gone
		}
	}
	if _, known := l.told[key]; known {
		return false
	}
	if l.told == nil {
		l.told = map[string]time.Time{}
	}
	l.told[key] = now
	return true
}
