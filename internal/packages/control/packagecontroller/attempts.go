package packagecontroller

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How long a package that can't be installed waits for the next attempt: twice as long each time.
const (
	firstWait = 10 * time.Second
	lastWait  = 5 * time.Minute
)

// attempts remembers which packages failed, so that events don't pull their images again and again. Losing it costs an attempt.
type attempts struct {
	mu    sync.Mutex
	byKey map[client.ObjectKey]attempt
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
	a.mu.Lock()
	defer a.mu.Unlock()
	last, ok := a.byKey[key]
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
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = map[client.ObjectKey]attempt{}
	}
	last := a.byKey[key]
	if last.target != target {
		last = attempt{target: target}
	}
	last.final = final
	wait := min(firstWait<<min(last.count, 10), lastWait)
	last.count++
	last.next = now.Add(wait)
	a.byKey[key] = last
	if final {
		return 0
	}
	return wait
}

func (a *attempts) forget(key client.ObjectKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byKey, key)
}
