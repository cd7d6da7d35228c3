package hotloop

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/fieldpath"
)

const (
	// maxTracked objects are remembered, those that were seen last; about 300 bytes each.
	maxTracked = 1024
	// maxSuspects objects are taken apart at a time, up to a megabyte each. Others wait until one was told or has calmed down.
	maxSuspects = 8
	// maxFields of an object are followed that change.
	maxFields = 64
	// maxWritersKept of a field.
	maxWritersKept = 8
	// share is the part of a processor that looking at one object may cost: after a look, share times as long is let go by.
	share = 50
	// leastPause is that between two looks at an object, however small it is.
	leastPause = 20 * time.Millisecond
)

// Detector counts writes of objects that informers receive. Its methods may be called concurrently.
type Detector struct {
	clock  clock.PassiveClock
	scheme *runtime.Scheme

	mu       sync.Mutex
	tracks   *lru.Cache           // UID → *track
	suspects map[types.UID]*track // with a detail
	hot      map[types.UID]*track // in a loop
	wake     chan struct{}
	labels   map[[3]string]bool
}

// New returns a Detector that sees nothing yet; see Watch and SetupWithManager.
func New(scheme *runtime.Scheme, clk clock.PassiveClock) *Detector {
	d := &Detector{clock: clk, scheme: scheme, suspects: map[types.UID]*track{}, hot: map[types.UID]*track{}, wake: make(chan struct{}, 1), labels: map[[3]string]bool{}}
	d.tracks = lru.NewWithEvictionFunc(maxTracked, func(_ lru.Key, value any) { d.forget(value.(*track)) })
	return d
}

// track is what is known of one object.
type track struct {
	uid        types.UID
	object     client.Object // metadata only
	version    string
	generation int64
	writes     window
	status     window // writes that left the generation as it was
	detail     *detail
	found      verdict
	since      time.Time // when it was found hot
	told       bool
}

// detail is what is known of the fields of an object that is written often.
type detail struct {
	last    fieldpath.Fields
	managed []metav1.ManagedFieldsEntry
	fields  map[string]*field
	writers []string
	next    time.Time // not to be looked at before
	looks   int
}

// field is one that has changed.
type field struct {
	before  string // its value before the last change
	returns window
	writers []string
}

// Watch has a cache show the detector what it receives. What the cache keeps does not change. A nil Detector looks at nothing.
func (d *Detector) Watch(o cache.Options) cache.Options {
	if d == nil {
		return o
	}
	o.DefaultTransform = d.before(o.DefaultTransform)
	byObject := map[client.Object]cache.ByObject{}
	for obj, by := range o.ByObject {
		if by.Transform != nil {
			by.Transform = d.before(by.Transform)
		}
		byObject[obj] = by
	}
	o.ByObject = byObject
	return o
}

// before sees objects ahead of a transformation, which may be nil. Informers show each object of a list and of a watch once.
func (d *Detector) before(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(in any) (any, error) {
		if obj, ok := in.(client.Object); ok {
			d.see(obj)
		}
		if next == nil {
			return in, nil
		}
		return next(in)
	}
}

// see counts a version of an object. The first is none that was written: lists show what was there before.
func (d *Detector) see(obj client.Object) {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	if uid == "" || version == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	value, known := d.tracks.Get(uid)
	if !known {
		d.tracks.Add(uid, &track{uid: uid, version: version, generation: obj.GetGeneration()})
		return
	}
	t := value.(*track)
	if t.version == version {
		return
	}
	now := d.clock.Now()
	t.writes.add(now)
	if t.generation == obj.GetGeneration() {
		t.status.add(now)
	}
	t.version, t.generation = version, obj.GetGeneration()
	if t.found.Loop != "" || t.writes.sum(now) < suspicious {
		return
	}
	d.look(t, obj, now)
	if v := decide(t.evidence(now)); v.Loop != "" {
		d.begin(t, obj, v, now)
	}
}

// look takes an object apart and compares it with what it was at the last look.
func (d *Detector) look(t *track, obj client.Object, now time.Time) {
	if t.detail == nil {
		if len(d.suspects) >= maxSuspects {
			d.dropCalm(now)
		}
		if len(d.suspects) >= maxSuspects {
			return
		}
		t.detail = &detail{fields: map[string]*field{}}
		d.suspects[t.uid] = t
	}
	if now.Before(t.detail.next) {
		return
	}
	fields, err := d.fields(obj)
	if err != nil {
		return // counted all the same
	}
	t.detail.looks++
	t.detail.compare(fields, obj.GetManagedFields(), now)
	t.detail.next = now.Add(max(leastPause, share*d.clock.Since(now)))
}

// fields are an object as its API shows it; Kind matters, so that nothing of Secrets is kept in plain text. Of what is known by its metadata
// only, they are who manages what: managers who fight take fields from each other.
func (d *Detector) fields(obj client.Object) (fieldpath.Fields, error) {
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		return fieldpath.Flatten(o.Object), nil
	case *metav1.PartialObjectMetadata:
		return fieldpath.Owners(o.ManagedFields), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	content["kind"] = d.kind(obj)
	return fieldpath.Flatten(content), nil
}

func (d *Detector) kind(obj client.Object) string {
	if kinds, _, err := d.scheme.ObjectKinds(obj); err == nil && len(kinds) > 0 {
		return kinds[0].Kind
	}
	return obj.GetObjectKind().GroupVersionKind().Kind
}

// compare notes which fields have changed since the last look, and which of them are again what they were before.
func (d *detail) compare(now fieldpath.Fields, managed []metav1.ManagedFieldsEntry, at time.Time) {
	last, lastManaged := d.last, d.managed
	d.last, d.managed = now, managed
	if last == nil {
		return
	}
	all := fieldpath.Writers(lastManaged, managed)
	d.writers = merge(d.writers, all)
	reported := all
	if of := ofStatus(managed); len(of) > 0 {
		reported = fieldpath.Writers(ofStatus(lastManaged), of)
	}
	for _, c := range fieldpath.Changes(last, now) {
		f, wrote := d.fields[c.Path], all
		if status(c.Path) { // who changed the spec between two looks has not written it
			wrote = reported
		}
		if f == nil {
			if len(d.fields) >= maxFields {
				continue
			}
			d.fields[c.Path] = &field{before: c.Before, writers: merge(c.Managers(lastManaged, managed), wrote)}
			continue
		}
		if f.before == c.After {
			f.returns.add(at)
		}
		f.before = c.Before
		f.writers = merge(merge(f.writers, c.Managers(lastManaged, managed)), wrote)
	}
}

// ofStatus are the entries of those who write the status, where that is written apart.
func ofStatus(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if e.Subresource == "status" {
			out = append(out, e)
		}
	}
	return out
}

// merge adds names to others, up to a bound.
func merge(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) && len(names) < maxWritersKept {
			names = append(names, name)
		}
	}
	return names
}

func (t *track) evidence(now time.Time) evidence {
	e := evidence{Writes: t.writes.sum(now), StatusWrites: t.status.sum(now)}
	if t.detail == nil {
		e.Unseen = true
		return e
	}
	e.Looks = t.detail.looks
	e.Writers = slices.Sorted(slices.Values(t.detail.writers))
	for path, f := range t.detail.fields {
		if n := f.returns.sum(now); n > 0 {
			e.Fields = append(e.Fields, fieldEvidence{Path: path, Returns: n, Writers: slices.Sorted(slices.Values(f.writers))})
		}
	}
	return e
}

// begin notes that an object is in a loop. What was kept to find that out isn't needed any more.
func (d *Detector) begin(t *track, obj client.Object, v verdict, now time.Time) {
	d.dropDetail(t)
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: t.uid, Annotations: obj.GetAnnotations(),
	}}
	kept.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	if kinds, _, err := d.scheme.ObjectKinds(obj); err == nil && len(kinds) > 0 && kept.Kind == "" {
		kept.SetGroupVersionKind(kinds[0])
	}
	t.object, t.found, t.since, t.told = kept, v, now, false
	d.hot[t.uid] = t
	select {
	case d.wake <- struct{}{}:
	default: // it is about to look
	}
}

func (d *Detector) dropDetail(t *track) {
	t.detail = nil
	delete(d.suspects, t.uid)
}

// dropCalm makes room for other suspects. It may be called with d.mu held only.
func (d *Detector) dropCalm(now time.Time) {
	for _, t := range d.suspects {
		if t.writes.sum(now) < suspicious {
			d.dropDetail(t)
		}
	}
}

// forget is called for an object that has not been seen for longest.
func (d *Detector) forget(t *track) {
	d.dropDetail(t)
	delete(d.hot, t.uid)
}
