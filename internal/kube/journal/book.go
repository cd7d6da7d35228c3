package journal

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"hcp.internal/platform/internal/clip"
)

const (
	// Label is on every journal, with the kind of the object in lower case.
	Label = "hypershift.openshift.io/journal"
	// key of the ConfigMap.
	key = "journal"
	// maxName is the longest name of a ConfigMap.
	maxName = 253
)

// Name is that of the ConfigMap with the journal of an object: "{kind}-{name}-journal". kind is in lower case.
func Name(kind, name string) string {
	const suffix = "-journal"
	return clip.To(kind+"-"+name, maxName-len(suffix)) + suffix
}

// Book writes journals. A nil Book writes none. All fields but Namespace are required.
type Book struct {
	Client client.Client // writes
	Live   client.Reader // uncached: a journal is read when there is something to add, and once a process
	Clock  clock.PassiveClock
	// Namespace is where journals of objects without a namespace are kept. Those are not kept when it is empty.
	Namespace string

	mu sync.Mutex
	// known are digests of the conditions that journals have, by object: a few bytes each, so that journals themselves need no memory.
	known map[types.UID]uint64
}

// maxKnown bounds what is remembered of objects that went without a word. Forgetting costs a read each.
const maxKnown = 50_000

// Record writes down what became of the conditions of an object since the journal was written last. Call it after the status is written, in every pass:
// it makes no request when nothing changed, but for the first time in a process. A journal is no reason to fail: callers log the error and go on, and the
// next pass adds what is missing.
func (b *Book) Record(ctx context.Context, obj client.Object, conditions []metav1.Condition) error {
	if b == nil || obj.GetUID() == "" || obj.GetNamespace() == "" && b.Namespace == "" || !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	digest := digestOf(conditions)
	if b.knows(obj.GetUID(), digest) {
		return nil
	}
	gvk, err := apiutil.GVKForObject(obj, b.Client.Scheme())
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", obj, err)
	}
	kind := strings.ToLower(gvk.Kind)
	at := client.ObjectKey{Namespace: cmp.Or(obj.GetNamespace(), b.Namespace), Name: Name(kind, obj.GetName())}
	entries, version, err := b.read(ctx, at, obj.GetUID())
	if err != nil {
		return err
	}
	entries, changed := Next(entries, conditions, b.Clock.Now())
	if changed {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name, ResourceVersion: version, Labels: map[string]string{Label: kind},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: obj.GetName(), UID: obj.GetUID()}}},
			Data: map[string]string{key: Text(entries)}}
		if err := b.write(ctx, cm); err != nil {
			return fmt.Errorf("writing the journal %s: %w", at, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) >= maxKnown {
		b.known = map[types.UID]uint64{}
	}
	b.known[obj.GetUID()] = digest
	return nil
}

// write creates a journal, or updates it over the version that was read: two processes must not write over each other's entries. A namespace that goes
// takes no more of them.
func (b *Book) write(ctx context.Context, cm *corev1.ConfigMap) error {
	var err error
	if cm.ResourceVersion == "" {
		err = b.Client.Create(ctx, cm)
	} else {
		err = b.Client.Update(ctx, cm)
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// Forget drops what is remembered of an object that is gone.
func (b *Book) Forget(uid types.UID) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, uid)
}

func (b *Book) knows(uid types.UID, digest uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.known[uid]
	return ok && known == digest
}

// digestOf identifies what a journal goes by, whatever the order.
func digestOf(conditions []metav1.Condition) uint64 {
	var sum uint64
	for _, c := range conditions {
		h := fnv.New64a()
		fmt.Fprintf(h, "%q %q %q", c.Type, c.Status, c.Reason)
		sum += h.Sum64()
	}
	return sum
}

// read finds the journal of an object, and its version; empty: there is none. One of an object that had the same name before is written over.
func (b *Book) read(ctx context.Context, at client.ObjectKey, uid types.UID) ([]Entry, string, error) {
	cm := &corev1.ConfigMap{}
	err := b.Live.Get(ctx, at, cm)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the journal %s: %w", at, err)
	}
	for _, o := range cm.OwnerReferences {
		if o.UID == uid {
			return Parse(cm.Data[key]), cm.ResourceVersion, nil
		}
	}
	return nil, cm.ResourceVersion, nil
}

// Read gives the journal of an object for people; empty: there is none.
func Read(ctx context.Context, c client.Reader, kind, namespace, name string) ([]Entry, error) {
	cm := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name(kind, name)}, cm)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal of %s %s/%s: %w", kind, namespace, name, err)
	}
	return Parse(cm.Data[key]), nil
}
