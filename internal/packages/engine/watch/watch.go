// Package watch watches the objects that packages own, of any kind, and keeps only their metadata.
//
// There is one watch for each kind in use, shared by all that use it, and bounded by the label package-operator.run/cache. Whoever
// needs to know more than metadata reads the object when its resourceVersion is one that he hasn't seen.
package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/hotloop"
	"hcp.internal/platform/internal/packages/engine/owner"
	"hcp.internal/platform/internal/sleep"
)

// syncTimeout is how long a pass waits for the first list of a kind. One that takes longer, or never succeeds, goes on in the background: whoever needs the
// kind reads its objects meanwhile.
const syncTimeout = 5 * time.Second

// syncPoll is how often it is looked whether a list has come.
const syncPoll = 20 * time.Millisecond

// settle is how long a reconcile waits after an event, so that it sees the events of its other objects, too: those of a rollout come
// together.
const settle = 50 * time.Millisecond

// settleOthers is how long an owner waits that is not the object's controller. All that it could do is to report; most often it is archived first.
const settleOthers = time.Second

// ErrNotWatched is what Get returns for a kind that nobody has asked to be watched, or whose first list has not come.
var ErrNotWatched = errors.New("kind is not watched")

// Cache watches. Its zero value is of no use; see New.
type Cache struct {
	cache cache.Cache

	mu          sync.Mutex
	kinds       map[schema.GroupVersionKind]*watched
	subscribers []subscriber
}

// watched is a kind in use.
type watched struct {
	users map[types.UID]struct{}
	since time.Time
	// informer is nil until it is there.
	informer cache.Informer
}

// synced says whether the first list has come.
func (w *watched) synced() bool { return w != nil && w.informer != nil && w.informer.HasSynced() }

// subscriber wants to know of changes of what its kind of owner owns.
type subscriber struct {
	owner    schema.GroupKind
	strategy owner.Strategy
	known    func(owner types.UID, obj *metav1.PartialObjectMetadata) bool
	requests func(obj *metav1.PartialObjectMetadata) []reconcile.Request
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New returns a Cache for the cluster of cfg, whose objects loops looks at unless it is nil. It must be started, as a manager's runnable or otherwise, before it is used.
func New(cfg *rest.Config, httpClient *http.Client, mapper meta.RESTMapper, loops *hotloop.Detector) (*Cache, error) {
	selector := labels.SelectorFromSet(labels.Set{v1alpha1.CacheLabel: v1alpha1.CacheLabelValue})
	c, err := cache.New(cfg, loops.Watch(cache.Options{
		HTTPClient: httpClient, Mapper: mapper, Scheme: runtime.NewScheme(),
		DefaultLabelSelector: selector, DefaultTransform: reduce,
		// What is read is only looked at.
		DefaultUnsafeDisableDeepCopy: ptr.To(true),
		ReaderFailOnMissingInformer:  true,
	}))
	if err != nil {
		return nil, fmt.Errorf("setting up the cache of managed objects: %w", err)
	}
	return &Cache{cache: c, kinds: map[schema.GroupVersionKind]*watched{}}, nil
}

// Start runs the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error { return c.cache.Start(ctx) }

// NeedLeaderElection says that only the process that works needs to watch.
func (c *Cache) NeedLeaderElection() bool { return true }

// Marker of managed fields that were written by an update rather than applied; see HasUpdates.
const updatesMarker = "package-operator.run/internal-updates"

// LegacyManagers are field managers that wrote objects by update in the past; they are migrated before an object is applied.
var LegacyManagers = []string{v1alpha1.FieldOwner, "package-operator-manager", "remote-phase-manger"}

// reduce keeps of an object what decisions are made from.
func reduce(in any) (any, error) {
	obj, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil
	}
	kept := map[string]string{}
	for key, value := range obj.Annotations {
		if key == v1alpha1.RevisionAnnotation || key == v1alpha1.OwnersAnnotation {
			kept[key] = value
		}
	}
	if Updated(obj.ManagedFields) {
		kept[updatesMarker] = "true"
	}
	if len(kept) == 0 {
		kept = nil
	}
	obj.Annotations, obj.ManagedFields = kept, nil
	return obj, nil
}

// Updated says whether one of our field managers wrote by update, so that its fields have to be migrated.
func Updated(fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Operation == metav1.ManagedFieldsOperationUpdate && f.Subresource == "" && slices.Contains(LegacyManagers, f.Manager)
	})
}

// HasUpdates is Updated for what Get returns.
func HasUpdates(obj *metav1.PartialObjectMetadata) bool {
	return obj.Annotations[updatesMarker] != "" || Updated(obj.ManagedFields)
}

// Use declares which kinds a user needs to have watched, and waits a while until they are. What it needed before and no longer needs is released. Kinds
// that the API server does not know are left out. Those of late are not listed yet, or can't be: nobody is told of their objects until they are.
func (c *Cache) Use(ctx context.Context, user types.UID, kinds []schema.GroupVersionKind) (late []schema.GroupVersionKind, _ error) {
	c.mu.Lock()
	var missing []schema.GroupVersionKind
	for _, kind := range kinds {
		if w := c.kinds[kind]; w == nil {
			missing = append(missing, kind)
		} else if _, ok := w.users[user]; !ok {
			missing = append(missing, kind)
		}
	}
	c.mu.Unlock()
	for _, kind := range missing {
		if err := c.start(ctx, user, kind); err != nil {
			return nil, err
		}
	}
	return c.await(ctx, kinds), c.release(ctx, user, kinds)
}

// await waits for the first lists of kinds that have not been waited for yet, and returns those that have not come.
func (c *Cache) await(ctx context.Context, kinds []schema.GroupVersionKind) []schema.GroupVersionKind {
	for {
		late, young := c.late(kinds)
		if !young || sleep.For(ctx, syncPoll) != nil {
			return late
		}
	}
}

// late are the kinds whose first list has not come, and whether it is to be waited for.
func (c *Cache) late(kinds []schema.GroupVersionKind) (late []schema.GroupVersionKind, young bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range kinds {
		if w := c.kinds[kind]; w != nil && !w.synced() {
			late = append(late, kind)
			young = young || time.Since(w.since) < syncTimeout
		}
	}
	return late, young
}

// Free releases every kind that a user needed.
func (c *Cache) Free(ctx context.Context, user types.UID) error { return c.release(ctx, user, nil) }

func (c *Cache) start(ctx context.Context, user types.UID, kind schema.GroupVersionKind) error {
	c.mu.Lock()
	w := c.kinds[kind]
	first := w == nil
	if first {
		w = &watched{users: map[types.UID]struct{}{}, since: time.Now()}
		c.kinds[kind] = w
	}
	w.users[user] = struct{}{} // before the watch starts, so that nobody else stops it
	c.mu.Unlock()
	if !first {
		return nil
	}
	informer, err := c.cache.GetInformer(ctx, metadataOf(kind), cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj any, _ bool) { c.notify(obj, false) },
			UpdateFunc: func(_, obj any) { c.notify(obj, false) },
			DeleteFunc: func(obj any) { c.notify(obj, true) },
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		w.informer = informer
		return nil
	}
	// Nobody handles its events. Everybody who needs the kind starts it anew at the next pass.
	if c.kinds[kind] == w {
		delete(c.kinds, kind)
		_ = c.cache.RemoveInformer(ctx, metadataOf(kind))
	}
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("watching %s: %w", kind, err)
}

func (c *Cache) release(ctx context.Context, user types.UID, except []schema.GroupVersionKind) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for kind, w := range c.kinds {
		if _, used := w.users[user]; !used || slices.Contains(except, kind) {
			continue
		}
		delete(w.users, user)
		if len(w.users) > 0 {
			continue
		}
		delete(c.kinds, kind)
		errs = append(errs, c.cache.RemoveInformer(ctx, metadataOf(kind)))
	}
	return errors.Join(errs...)
}

// Kinds returns the kinds that are watched, sorted.
func (c *Cache) Kinds() []schema.GroupVersionKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Keys(c.kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}

// Get returns what the watch knows of an object. It must not be changed. The error is a NotFound error when the watch knows of none,
// and ErrNotWatched when the kind is not in use, or not listed yet.
func (c *Cache) Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	c.mu.Lock()
	synced := c.kinds[kind].synced()
	c.mu.Unlock()
	if !synced {
		return nil, fmt.Errorf("%w: %s", ErrNotWatched, kind)
	}
	obj := metadataOf(kind)
	if err := c.cache.Get(ctx, key, obj); err != nil {
		var notCached *cache.ErrResourceNotCached
		if errors.As(err, &notCached) {
			return nil, fmt.Errorf("%w: %s", ErrNotWatched, kind)
		}
		return nil, err
	}
	return obj, nil
}

// Count returns how many objects of a kind the watch knows.
func (c *Cache) Count(ctx context.Context, kind schema.GroupVersionKind) int {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.cache.List(ctx, list); err != nil {
		return 0
	}
	return len(list.Items)
}

// Owned is a source of events for a controller of owners: what they own, read with strategy, has changed. known says that an owner has
// seen an object as it is now, so that nothing needs to be done.
func (c *Cache) Owned(kind schema.GroupKind, strategy owner.Strategy, known func(types.UID, *metav1.PartialObjectMetadata) bool) source.Source {
	return source.TypedFunc[reconcile.Request](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		c.subscribe(subscriber{owner: kind, strategy: strategy, known: known, queue: queue})
		return nil
	})
}

// Mapped is a source of events for a controller that finds out itself whom an object concerns.
func (c *Cache) Mapped(requests func(*metav1.PartialObjectMetadata) []reconcile.Request) source.Source {
	return source.TypedFunc[reconcile.Request](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		c.subscribe(subscriber{requests: requests, queue: queue})
		return nil
	})
}

func (c *Cache) subscribe(s subscriber) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A new slice, since notify goes through the old one without the lock.
	c.subscribers = append(slices.Clone(c.subscribers), s)
}

func (c *Cache) notify(obj any, deleted bool) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	metadata, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	c.mu.Lock()
	subscribers := c.subscribers
	c.mu.Unlock()
	for _, s := range subscribers {
		s.enqueue(metadata, deleted)
	}
}

func (s subscriber) enqueue(obj *metav1.PartialObjectMetadata, deleted bool) {
	if s.requests != nil {
		for _, req := range s.requests(obj) {
			s.queue.AddAfter(req, settle)
		}
		return
	}
	owners, err := s.strategy.Read(obj)
	if err != nil {
		return // whoever works on the object next reports it
	}
	for _, o := range owners {
		if o.GroupKind() != s.owner || (!deleted && s.known(o.UID, obj)) {
			continue
		}
		key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
		// An owner reference has no namespace, because it can't point to another one.
		if o.Namespace == "" && !strings.HasPrefix(s.owner.Kind, "Cluster") {
			key.Namespace = obj.Namespace
		}
		delay := settle
		if !o.Controller {
			delay = settleOthers
		}
		s.queue.AddAfter(reconcile.Request{NamespacedName: key}, delay)
	}
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(kind)
	return obj
}
