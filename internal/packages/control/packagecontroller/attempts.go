package packagecontroller

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/memory"
)

// How long a package that can't be installed waits for the next attempt: twice as long each time.
const (
	firstWait = 10 * time.Second
	lastWait  = 5 * time.Minute
)

// attempts remembers which packages failed, so that events don't pull their images again and again. Losing it costs an attempt.
type attempts struct {
	byKey memory.Of[attempt]
}

type attempt struct {
	// target is what was to be installed; with another one all starts anew.
	target string
	next   time.Time
	count  int
	final  bool
}

// wait says how long to wait, 0 for until something changes. known is false when it is time to try.
func (a *attempts) wait(key client.ObjectKey, target string, now time.Time) (wait time.Duration, known bool) {
	last, ok := a.byKey.Get(key)
	switch {
	case !ok || last.target != target:
		return 0, false
	case last.final:
		return 0, true
	case now.Before(last.next):
		return last.next.Sub(now), true
	}
	return 0, false
}

// failed notes an attempt and says how long to wait for the next one, 0 for until something changes.
func (a *attempts) failed(key client.ObjectKey, target string, final bool, now time.Time) time.Duration {
	last := a.byKey.Update(key, func(last attempt) attempt {
		if last.target != target {
			last = attempt{target: target}
		}
		last.final = final
		last.next = now.Add(min(firstWait<<min(last.count, 10), lastWait))
		last.count++
		return last
	})
	if final {
		return 0
	}
	return last.next.Sub(now)
}

func (a *attempts) forget(key client.ObjectKey) { a.byKey.Forget(key) }
