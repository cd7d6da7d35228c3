package objectset

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/outcome"
)

// eventRolloutError says that passes go on failing for a reason that may go away by itself.
const eventRolloutError = "RolloutError"

// troublePatience is how long passes may fail before somebody is told: an API server or a webhook that is restarted needs less.
const troublePatience = 5 * time.Second

// troubles are what passes fail with again and again, by UID of the ObjectSet. Who restarts forgets them, and tells them once more.
type troubles struct{ byUID sync.Map }

// trouble belongs to the one pass of its ObjectSet that runs.
type trouble struct {
	since time.Time
	told  string
}

// of is what to tell after a pass that ended with an error or none: "" for nothing, and never the same twice until a pass has come through.
func (t *troubles) of(uid types.UID, err error, now time.Time) string {
	if err == nil {
		t.byUID.Delete(uid)
		return ""
	}
	if outcome.IsConflict(err) {
		return ""
	}
	found, _ := t.byUID.LoadOrStore(uid, &trouble{since: now})
	known, text := found.(*trouble), err.Error()
	if known.told == text || now.Sub(known.since) < troublePatience {
		return ""
	}
	known.since, known.told = now, text
	return text
}

// tell tells of passes that fail. Answers that concern what an object contains are violations, and no part of these errors.
func (r *Reconciler) tell(os *v1alpha1.ObjectSet, err error) {
	if text := r.troubles.of(os.UID, err, r.Clock.Now()); text != "" {
		r.Events.Tell(os, nil, corev1.EventTypeWarning, eventRolloutError, "RollOut", "The revision can't be rolled out at present, which is tried again: "+text)
	}
}
