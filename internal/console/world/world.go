package world

import (
	"sync"
)

// Ring is how many changes are remembered.
const Ring = 4096

// Change is that something became of an object: made, changed or gone.
type Change struct {
	Kind Kind
	Key  Key
}

// World keeps rows. Its methods may be called concurrently. Rows that it gives must not be changed.
type World struct {
	mu       sync.RWMutex
	clusters map[Key]*Cluster
	pools    map[Key]*Pool
	packages map[Key]*Package
	rollouts map[Key]*Rollout
	// poolsOf are the keys of the NodePools of a hosted cluster.
	poolsOf map[Key]map[Key]bool

	ring [Ring]Change
	// seq is the number of the last change; the first is 1.
	seq uint64
	// moved is closed at the next change.
	moved chan struct{}
	// trouble says by kind why it can't be listed; synced which kinds were listed once.
	trouble map[Kind]string
	synced  map[Kind]bool
}

// New is an empty world. Run fills it.
func New() *World {
	return &World{clusters: map[Key]*Cluster{}, pools: map[Key]*Pool{}, packages: map[Key]*Package{}, rollouts: map[Key]*Rollout{}, poolsOf: map[Key]map[Key]bool{},
		moved: make(chan struct{}), trouble: map[Kind]string{}, synced: map[Kind]bool{}}
}

// Seq is the number of the last change.
func (w *World) Seq() uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.seq
}

// Moved is closed when something changes after this call.
func (w *World) Moved() <-chan struct{} {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.moved
}

// Since are the changes after number seq, each object once, and the number to ask with next. false: so much changed since then, or seq is of another
// process, that the reader has to read all of it anew.
func (w *World) Since(seq uint64) ([]Change, uint64, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if seq > w.seq || w.seq-seq > Ring {
		return nil, w.seq, false
	}
	seen := map[Change]bool{}
	var out []Change
	for n := seq + 1; n <= w.seq; n++ {
		c := w.ring[n%Ring]
		if !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	return out, w.seq, true
}

// changed notes a change. The lock is held.
func (w *World) changed(kind Kind, key Key) {
	w.seq++
	w.ring[w.seq%Ring] = Change{kind, key}
	close(w.moved)
	w.moved = make(chan struct{})
}

// Put puts a row in, such as a *Cluster; nil takes it out. Run does so with what it sees; measurements fill a world without an API server.
func (w *World) Put(kind Kind, key Key, row any) { w.set(kind, key, row) }

// set puts a row in, nil takes it out.
func (w *World) set(kind Kind, key Key, row any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch kind {
	case Clusters:
		put(w.clusters, key, row)
	case Packages:
		put(w.packages, key, row)
	case Rollouts:
		put(w.rollouts, key, row)
	case Pools:
		if old := w.pools[key]; old != nil {
			w.unlink(key, old)
		}
		put(w.pools, key, row)
		if pool, ok := row.(*Pool); ok {
			owner := Key{key.Namespace, pool.Cluster}
			if w.poolsOf[owner] == nil {
				w.poolsOf[owner] = map[Key]bool{}
			}
			w.poolsOf[owner][key] = true
			w.changed(Clusters, owner) // its nodes
		}
	}
	w.changed(kind, key)
}

// unlink takes a NodePool from its hosted cluster. The lock is held.
func (w *World) unlink(key Key, pool *Pool) {
	owner := Key{key.Namespace, pool.Cluster}
	delete(w.poolsOf[owner], key)
	if len(w.poolsOf[owner]) == 0 {
		delete(w.poolsOf, owner)
	}
	w.changed(Clusters, owner)
}

func put[R any](into map[Key]*R, key Key, row any) {
	if r, ok := row.(*R); ok {
		into[key] = r
		return
	}
	delete(into, key)
}

// keys are those of all rows of a kind.
func (w *World) keys(kind Kind) []Key {
	w.mu.RLock()
	defer w.mu.RUnlock()
	switch kind {
	case Clusters:
		return keysOf(w.clusters)
	case Pools:
		return keysOf(w.pools)
	case Packages:
		return keysOf(w.packages)
	}
	return keysOf(w.rollouts)
}

func keysOf[R any](m map[Key]*R) []Key {
	out := make([]Key, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

// Cluster is the row of a hosted cluster with its nodes; nil: there is none.
func (w *World) Cluster(key Key) *Cluster {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.cluster(key)
}

func (w *World) cluster(key Key) *Cluster {
	row := w.clusters[key]
	if row == nil {
		return nil
	}
	out := *row
	for pool := range w.poolsOf[key] {
		if p := w.pools[pool]; p != nil {
			out.Ready, out.Wanted, out.Pools = out.Ready+p.Ready, out.Wanted+p.Wanted, out.Pools+1
		}
	}
	return &out
}

// Package is the row of a Package; nil: there is none.
func (w *World) Package(key Key) *Package {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.packages[key]
}

// Rollout is the row of a HostedClusterPackage; nil: there is none.
func (w *World) Rollout(name string) *Rollout {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.rollouts[Key{Name: name}]
}

// EachCluster calls take for the rows of hosted clusters, in no order, and returns the number of the last change that they hold.
func (w *World) EachCluster(take func(*Cluster)) uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for key := range w.clusters {
		take(w.cluster(key))
	}
	return w.seq
}

// EachPackage is EachCluster for Packages.
func (w *World) EachPackage(take func(*Package)) uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, row := range w.packages {
		take(row)
	}
	return w.seq
}

// EachRollout is EachCluster for HostedClusterPackages.
func (w *World) EachRollout(take func(*Rollout)) uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, row := range w.rollouts {
		take(row)
	}
	return w.seq
}

// Namespaces are those that have rows of a kind.
func (w *World) Namespaces(kind Kind) []string {
	seen, out := map[string]bool{}, []string{}
	for _, k := range w.keys(kind) {
		if !seen[k.Namespace] {
			seen[k.Namespace] = true
			out = append(out, k.Namespace)
		}
	}
	return out
}

// Trouble says why a kind can't be listed now; empty: it can. What was read before stays.
func (w *World) Trouble(kind Kind) string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.trouble[kind]
}

// Synced tells whether all kinds were listed, or were found not to be listable.
func (w *World) Synced() bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, k := range watched {
		if !w.synced[k.kind] && w.trouble[k.kind] == "" {
			return false
		}
	}
	return true
}

func (w *World) setTrouble(kind Kind, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if why == "" {
		w.synced[kind] = true
	}
	if w.trouble[kind] == why {
		return
	}
	w.trouble[kind] = why
	w.changed(kind, Key{}) // readers look at the trouble, too
}
