package hostedclusterpackage

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "hcp.internal/api/packages/v1alpha1"

	"hcp.internal/platform/internal/kube/fresh"
)

// memory is what need not be read again, because this process is the only writer. A process that starts anew has none, and reads.
type memory struct {
	mu   sync.Mutex
	seen map[string]*remembered // by name
}

// remembered is what is known of a HostedClusterPackage.
type remembered struct {
	uid  types.UID
	past past
	// last is the object as we have last seen it past the cache, or left it.
	last     *packagesv1.HostedClusterPackage
	applied  applied
	refusals refusals
	// told are the last warnings, by reason.
	told map[string]string
}

// past is what a pass needs of a history.
type past struct {
	hash      string
	completed bool
	good      *template
	// unkept tells that there is no history, since there is no place for one.
	unkept bool
}

// fallback is the template to return to when the newest fails; nil when there is none. The whole fleet was up with one that was completed: what goes wrong
// later, in a cluster that wakes or in another environment, is no reason to take it from those that are well.
func (p past) fallback() *template {
	if p.completed {
		return nil
	}
	return p.good
}

func (m *memory) of(owner *packagesv1.HostedClusterPackage) *remembered {
	if m.seen == nil {
		m.seen = map[string]*remembered{}
	}
	if known := m.seen[owner.Name]; known == nil || known.uid != owner.UID {
		m.seen[owner.Name] = &remembered{uid: owner.UID}
	}
	return m.seen[owner.Name]
}

// get is what is known of the history, if the template of hash is its newest.
func (m *memory) get(owner *packagesv1.HostedClusterPackage, hash string) (past, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(owner).past
	return p, p.hash == hash
}

func (m *memory) put(owner *packagesv1.HostedClusterPackage, p past) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(owner).past = p
}

// tell says whether a warning is to be told: it is another one than the last. An empty one is none.
func (m *memory) tell(owner *packagesv1.HostedClusterPackage, reason, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(owner)
	if known.told[reason] == text {
		return false
	}
	if known.told == nil {
		known.told = map[string]string{}
	}
	known.told[reason] = text
	return text != ""
}

func (m *memory) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, name)
}

// newest is the object of a cache, or what we have seen or left later than that. A pass with an older one would be in vain.
func (m *memory) newest(cached *packagesv1.HostedClusterPackage) *packagesv1.HostedClusterPackage {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.of(cached).last
	if last == nil {
		return cached
	}
	if !fresh.Older(cached.ResourceVersion, last.ResourceVersion) {
		return cached
	}
	return last.DeepCopy()
}

// saw remembers an object that no cache handed out. It is not changed any more.
func (m *memory) saw(p *packagesv1.HostedClusterPackage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(p).last = p
}

func (m *memory) applied(owner *packagesv1.HostedClusterPackage) *applied {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &m.of(owner).applied
}

func (m *memory) refusals(owner *packagesv1.HostedClusterPackage) *refusals {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &m.of(owner).refusals
}

// applied knows how our last changes left Packages, by namespace, as far as they are in flight.
type applied struct {
	mu   sync.Mutex
	last map[string]generation
}

type generation struct {
	uid    types.UID
	number int64
	// version is the resourceVersion that the change left. Annotations count for no generation, and one of them is all that a Package is told of another
	// environment by.
	version string
	at      time.Time // when it was changed, as the API server noted it
}

// fresh tells that a Package as a cache shows it is not older than our last change of it.
func (a *applied) fresh(p *packagesv1.Package) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	g, ok := a.last[p.Namespace]
	return ok && g.uid == p.UID && g.number <= p.Generation && !fresh.Older(p.ResourceVersion, g.version)
}

// at is when we changed a Package last; zero when that is not known.
func (a *applied) at(namespace string, uid types.UID) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g := a.last[namespace]; g.uid == uid {
		return g.at
	}
	return time.Time{}
}

func (a *applied) put(namespace string, g generation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		a.last = map[string]generation{}
	}
	a.last[namespace] = g
}

func (a *applied) forget(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, namespace)
}

// keep forgets Packages that are not in flight any more.
func (a *applied) keep(processing []packagesv1.HostedClusterPackageRefStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := make(map[string]generation, len(processing))
	for _, ref := range processing {
		if g, ok := a.last[ref.Namespace]; ok {
			last[ref.Namespace] = g
		}
	}
	a.last = last
}
