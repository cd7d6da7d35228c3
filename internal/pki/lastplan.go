package pki

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settledFor is how long it is believed that nothing is to be done while nothing changes. What depends on time alone is looked at earlier when a
// renewal is due earlier.
const settledFor = time.Hour

// lastPlan remembers the plan that had nothing to write. Looking at forty certificates again, with a signature to verify for each, would be most of
// what a pass costs in which nothing happens. Forgetting it costs one such look.
type lastPlan struct {
	mu    sync.Mutex
	state [sha256.Size]byte
	known Plan
	at    time.Time
}

// stateOf identifies the spec and the objects that a plan is made from.
func stateOf(spec Spec, obs Observed) (sum [sha256.Size]byte) {
	h := sha256.New()
	// A Spec is strings, numbers and lists of them, which always have a JSON form.
	_ = json.NewEncoder(h).Encode(spec)
	identify(h, obs.Secrets)
	identify(h, obs.ConfigMaps)
	h.Sum(sum[:0])
	return sum
}

func identify[T client.Object](h hash.Hash, objs map[string]T) {
	for _, name := range slices.Sorted(maps.Keys(objs)) {
		fmt.Fprintf(h, "%q %q %q\n", name, objs[name].GetUID(), objs[name].GetResourceVersion())
	}
	fmt.Fprintln(h)
}

// plan gives what was remembered, with the time that is left until the next renewal.
func (s *lastPlan) plan(state [sha256.Size]byte, now time.Time) (Plan, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := now.Sub(s.at)
	if s.at.IsZero() || s.state != state || age < 0 || age >= settledFor {
		return Plan{}, false
	}
	plan := s.known
	if plan.RecheckAfter > 0 {
		if plan.RecheckAfter -= age; plan.RecheckAfter <= 0 {
			return Plan{}, false
		}
	}
	return plan, true
}

func (s *lastPlan) remember(state [sha256.Size]byte, plan Plan, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.known, s.at = state, plan, now
}
