// Package memory lets a controller remember something about each object for as long as its process runs. What it remembers saves work, and must never decide
// whether a result is right: a process that restarts has forgotten everything, and one that knows too many objects forgets some.
package memory

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Most is how many objects one memory knows at the same time, which is several times what a management cluster hosts. It bounds what remains of objects that
// went away unnoticed.
const Most = 10_000

// Of holds a value for each object, by namespace and name. The zero value is empty and ready for use. It is safe for concurrent use; values are handed out as
// they are stored, so a V with pointers must not be changed by whoever gets it.
type Of[V any] struct {
	mu     sync.Mutex
	values map[types.NamespacedName]V
}

// Get returns what is known of an object, and whether anything is.
func (m *Of[V]) Get(key types.NamespacedName) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, known := m.values[key]
	return v, known
}

// Put replaces what is known of an object. When that would be one object too many, an arbitrary other one is forgotten.
func (m *Of[V]) Put(key types.NamespacedName, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, v)
}

// Update replaces what is known of an object by what change makes of it, and returns that. change gets the zero V when nothing is known; nobody else reads or
// writes the memory meanwhile, so it must be quick and must not use the memory itself.
func (m *Of[V]) Update(key types.NamespacedName, change func(V) V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := change(m.values[key])
	m.put(key, v)
	return v
}

// Forget drops what is known of an object. Call it when the object is gone.
func (m *Of[V]) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
}

// ForgetWhere drops the objects whose values match.
func (m *Of[V]) ForgetWhere(match func(V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, v := range m.values {
		if match(v) {
			delete(m.values, key)
		}
	}
}

func (m *Of[V]) put(key types.NamespacedName, v V) {
	if m.values == nil {
		m.values = map[types.NamespacedName]V{}
	}
	if _, known := m.values[key]; !known && len(m.values) >= Most {
		for other := range m.values {
			delete(m.values, other)
			break
		}
	}
	m.values[key] = v
}
