package hostedclusterpackage

import (
	"sync"
	"time"

	"hcp.internal/platform/internal/packages/control/rollout"
)

const (
	// soonest and latest bound how long a Package that could not be written is left alone; the time doubles with each failure. Meanwhile its slot is
	// there for others, and a change of the template or of the Package ends it.
	soonest = 2 * time.Second
	latest  = 5 * time.Minute
)

// refusals knows which Packages could not be written, by namespace: another field manager owns what the template says, a quota or a webhook refuses
// them, or the API server did not answer. A process that starts anew tries them once more.
type refusals struct {
	mu   sync.Mutex
	last map[string]refusal
}

type refusal struct {
	hash       string // of the template
	generation int64  // of the Package
	why        string
	failures   int
	until      time.Time
}

// of says why the Package in a namespace is not to be written now; empty when it is to be tried.
func (r *refusals) of(namespace, hash string, generation int64, now time.Time) string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if x, ok := r.last[namespace]; ok && x.hash == hash && x.generation == generation && now.Before(x.until) {
		return x.why
	}
	return ""
}

func (r *refusals) put(namespace, hash string, generation int64, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]refusal{}
	}
	x := r.last[namespace]
	if x.hash != hash || x.generation != generation {
		x.failures = 0
	}
	wait := min(latest, soonest<<min(x.failures, 10))
	r.last[namespace] = refusal{hash, generation, rollout.Brief(err), x.failures + 1, now.Add(wait)}
}

func (r *refusals) forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, namespace)
}

// next is how long it is until something may be tried again; 0 when nothing waits.
func (r *refusals) next(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out time.Duration
	for _, x := range r.last {
		if left := x.until.Sub(now); left > 0 && (out == 0 || left < out) {
			out = left
		}
	}
	return out
}
