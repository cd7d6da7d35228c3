package phase

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/fresh"
)

// judgement is what was found out about an object at a resourceVersion.
type judgement struct {
	uid             types.UID
	resourceVersion string
	generation      int64
	// fields is the hash of what our field manager owned.
	fields uint64

	action     Action // Idle or Progressed
	controlled bool
	// drifted says that the object differs from what it should be, which nobody may change while paused.
	drifted    bool
	failures   []string
	conditions []metav1.Condition
}

// covers says whether the judgement was made at this resourceVersion or a later one. A watch may be behind what a write answered.
func (j *judgement) covers(version string) bool {
	return j.resourceVersion == version || fresh.Older(version, j.resourceVersion)
}

type memoryKey struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
}

// memory holds judgements by owner and object. It is only ever a shortcut.
type memory struct {
	mu     sync.Mutex
	owners map[types.UID]*ownerMemory
}

type ownerMemory struct {
	// asked is what the judgements depend on besides the owner's objects, which never change.
	asked   string
	objects map[memoryKey]*judgement
}

// prepare drops what was judged under other circumstances.
func (m *memory) prepare(o Owner) {
	asked := fmt.Sprint(o.Revision, o.Labels, o.Content)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owners == nil {
		m.owners = map[types.UID]*ownerMemory{}
	}
	if known := m.owners[o.Entry.UID]; known == nil || known.asked != asked {
		m.owners[o.Entry.UID] = &ownerMemory{asked: asked, objects: map[memoryKey]*judgement{}}
	}
}

func (m *memory) get(uid types.UID, key memoryKey) *judgement {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.owners[uid]; known != nil {
		return known.objects[key]
	}
	return nil
}

func (m *memory) put(uid types.UID, key memoryKey, j *judgement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.owners[uid]; known != nil {
		known.objects[key] = j
	}
}

// follow notes that an object which was judged at one resourceVersion has another one, by a write of ours that does not concern this owner.
func (m *memory) follow(uid types.UID, key memoryKey, from, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.owners[uid]
	if known == nil {
		return
	}
	if j := known.objects[key]; j != nil && j.resourceVersion == from {
		moved := *j
		moved.resourceVersion = to
		known.objects[key] = &moved
	}
}

func (m *memory) drop(uid types.UID, key memoryKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.owners[uid]; known != nil {
		delete(known.objects, key)
	}
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.owners, uid)
}
