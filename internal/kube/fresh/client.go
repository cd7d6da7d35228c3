// Package fresh keeps a program that reads from a cache from working on a state older than what it wrote itself.
package fresh

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Patience is how long a write may be missing from the cache before the cache is believed after all. A cache lags by milliseconds; ten seconds cover
// a broken watch that has to be set up again.
const Patience = 10 * time.Second

// Client is a client with cached reads that knows its own writes: Get answers with what a write returned until the cache has caught up.
//
// Without it a pass that writes certificates and then hashes them for a pod template would hash the old ones, and the pods that it had just started
// would be replaced by the next pass. It holds nothing that the API server does not hold: losing it costs a restart of pods at worst.
// List covers the kinds that New is told of alone.
type Client struct {
	client.Client
	clock clock.PassiveClock

	listed map[schema.GroupVersionKind]bool

	mu     sync.Mutex
	recent map[key]write
}

type key struct {
	kind schema.GroupVersionKind
	name client.ObjectKey
}

type write struct {
	obj client.Object
	at  time.Time
}

// New makes a client that knows the writes that go through it. listed are the kinds whose lists it completes.
func New(c client.Client, clk clock.PassiveClock, listed ...schema.GroupVersionKind) *Client {
	f := &Client{Client: c, clock: clk, listed: map[schema.GroupVersionKind]bool{}, recent: map[key]write{}}
	for _, kind := range listed {
		f.listed[kind] = true
	}
	return f
}

// remember notes the state that a write returned.
func (f *Client) remember(obj client.Object) {
	gvk, err := apiutil.GVKForObject(obj, f.Scheme())
	if err != nil || obj.GetResourceVersion() == "" {
		return
	}
	stored := obj.DeepCopyObject().(client.Object)
	stored.SetManagedFields(nil) // as the cache
	now := f.clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, w := range f.recent {
		if now.Sub(w.at) > Patience {
			delete(f.recent, key)
		}
	}
	f.recent[key{gvk, client.ObjectKeyFromObject(obj)}] = write{stored, now}
}

func (f *Client) forget(obj client.Object) {
	if gvk, err := apiutil.GVKForObject(obj, f.Scheme()); err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.recent, key{gvk, client.ObjectKeyFromObject(obj)})
	}
}

// newer gives the remembered object when the cache's, of resourceVersion cached ("" when it has none), is older.
func (f *Client) newer(key key, cached string) client.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.recent[key]
	if !ok {
		return nil
	}
	if f.clock.Now().Sub(w.at) <= Patience {
		if cached == "" {
			return w.obj
		}
		if Older(cached, w.obj.GetResourceVersion()) {
			return w.obj
		}
	}
	delete(f.recent, key)
	return nil
}

// Get implements client.Reader.
func (f *Client) Get(ctx context.Context, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := f.Client.Get(ctx, name, obj, opts...)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	gvk, kindErr := apiutil.GVKForObject(obj, f.Scheme())
	if kindErr != nil {
		return err
	}
	cached := ""
	if err == nil {
		cached = obj.GetResourceVersion()
	}
	stored := f.newer(key{gvk, name}, cached)
	if stored == nil {
		return err
	}
	return copyInto(stored, obj)
}

// List implements client.Reader.
func (f *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := f.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	kind, err := apiutil.GVKForObject(list, f.Scheme())
	if err != nil {
		return nil //nolint:nilerr // because it is no list of a kind that we know
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if !f.listed[kind] || options.LabelSelector != nil || options.FieldSelector != nil { // nobody asks for some of them
		return nil
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("taking a list of %s apart: %w", kind.Kind, err)
	}
	if items, err = f.complete(kind, options.Namespace, items); err != nil {
		return err
	}
	return meta.SetList(list, items)
}

// complete puts what was written lately into the items of a list.
func (f *Client) complete(kind schema.GroupVersionKind, namespace string, items []runtime.Object) ([]runtime.Object, error) {
	known := map[client.ObjectKey]int{}
	for i := range items {
		if obj, ok := items[i].(client.Object); ok {
			known[client.ObjectKeyFromObject(obj)] = i
		}
	}
	for name := range f.names(kind, namespace) {
		i, listed := known[name]
		cached := ""
		if listed {
			cached = items[i].(client.Object).GetResourceVersion()
		}
		newer := f.newer(key{kind, name}, cached)
		if newer == nil {
			continue
		}
		empty, err := f.Scheme().New(kind)
		if err != nil {
			return nil, fmt.Errorf("making a %s: %w", kind.Kind, err)
		}
		item := empty.(client.Object)
		if err := copyInto(newer, item); err != nil {
			return nil, err
		}
		if listed {
			items[i] = item
		} else {
			items = append(items, item)
		}
	}
	return items, nil
}

// names are those of the kind that were written lately.
func (f *Client) names(kind schema.GroupVersionKind, namespace string) map[client.ObjectKey]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := map[client.ObjectKey]bool{}
	for key := range f.recent {
		if key.kind == kind && (namespace == "" || key.name.Namespace == namespace) {
			names[key.name] = true
		}
	}
	return names
}

// Wrote says whether obj is as our own last write left it.
func (f *Client) Wrote(obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, f.Scheme())
	if err != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.recent[key{gvk, client.ObjectKeyFromObject(obj)}]
	return ok && w.obj.GetResourceVersion() == obj.GetResourceVersion()
}

// copyInto converts between the Go types of one kind: an applied object is unstructured, and read as its type.
func copyInto(from, to client.Object) error {
	from = from.DeepCopyObject().(client.Object)
	if reflect.TypeOf(from) == reflect.TypeOf(to) {
		reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return fmt.Errorf("converting %T %s: %w", from, client.ObjectKeyFromObject(from), err)
	}
	reflect.ValueOf(to).Elem().SetZero()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, to); err != nil {
		return fmt.Errorf("converting %T %s: %w", from, client.ObjectKeyFromObject(from), err)
	}
	return nil
}

// Create implements client.Writer.
func (f *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := f.Client.Create(ctx, obj, opts...); err != nil {
		return err
	}
	f.remember(obj)
	return nil
}

// Update implements client.Writer.
func (f *Client) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if err := f.Client.Update(ctx, obj, opts...); err != nil {
		return err
	}
	f.remember(obj)
	return nil
}

// Patch implements client.Writer.
func (f *Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := f.Client.Patch(ctx, obj, patch, opts...); err != nil {
		return err
	}
	f.remember(obj)
	return nil
}

// Apply implements client.Writer.
func (f *Client) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := f.Client.Apply(ctx, obj, opts...); err != nil {
		return err
	}
	if u, ok := obj.(client.Object); ok { // what ApplyConfigurationFromUnstructured gives, now filled with the answer
		f.remember(u)
	}
	return nil
}

// Delete implements client.Writer.
func (f *Client) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	f.forget(obj)
	return f.Client.Delete(ctx, obj, opts...)
}

// Status implements client.StatusClient.
func (f *Client) Status() client.SubResourceWriter {
	return statusWriter{f.Client.Status(), f}
}

type statusWriter struct {
	client.SubResourceWriter
	fresh *Client
}

// Patch implements client.SubResourceWriter.
func (s statusWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := s.SubResourceWriter.Patch(ctx, obj, patch, opts...); err != nil {
		return err
	}
	s.fresh.remember(obj)
	return nil
}

// Update implements client.SubResourceWriter.
func (s statusWriter) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if err := s.SubResourceWriter.Update(ctx, obj, opts...); err != nil {
		return err
	}
	s.fresh.remember(obj)
	return nil
}
