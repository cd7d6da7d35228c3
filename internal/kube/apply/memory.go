package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxRemembered bounds a Memory to some MiB; that is enough for the objects of a thousand hosted clusters. A full one starts anew, which
// costs comparisons.
const maxRemembered = 1 << 15

// Memory holds which state of an object was found to have everything that is asked for, so that it isn't compared again until one of the
// two changes. Losing it costs time only. The zero value is empty. It is safe for concurrent use.
type Memory struct {
	mu    sync.Mutex
	found map[types.UID]state
}

// state of an object, and the hash of what is asked for. A state never changes: a change makes another resourceVersion.
type state struct{ resourceVersion, hash string }

// Remembering makes the Applier look into m before it compares.
func (a *Applier) Remembering(m *Memory) *Applier {
	a.memory = m
	return a
}

func (m *Memory) has(live client.Object, hash string) bool {
	if m == nil || live.GetUID() == "" || live.GetResourceVersion() == "" {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.found[live.GetUID()] == state{live.GetResourceVersion(), hash}
}

func (m *Memory) add(live client.Object, hash string) {
	if m == nil || live.GetUID() == "" || live.GetResourceVersion() == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.found == nil || len(m.found) >= maxRemembered {
		m.found = map[types.UID]state{}
	}
	m.found[live.GetUID()] = state{live.GetResourceVersion(), hash}
}
