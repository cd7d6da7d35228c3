package hostedcontrolplane

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// freshFor is how long a write may be missing from the cache before the cache is believed after all. A cache lags by milliseconds; ten seconds cover
// a broken watch that has to be set up again.
const freshFor = 10 * time.Second

// freshClient is a client with cached reads that knows its own writes: Get answers with what a write returned until the cache has caught up.
//
// Without it a pass that writes certificates and then hashes them for a pod template would hash the old ones, and the pods that it had just started
// would be replaced by the next pass. It holds nothing that the API server does not hold: losing it costs a restart of pods at worst.
// List covers ControlPlaneComponents alone, on whose state components depend.
type freshClient struct {
	client.Client
	clock clock.PassiveClock

	mu     sync.Mutex
	recent map[freshKey]freshWrite
}

var componentKind = hyperv1.GroupVersion.WithKind("ControlPlaneComponent")

type freshKey struct {
	kind schema.GroupVersionKind
	name client.ObjectKey
}

type freshWrite struct {
	obj client.Object
	at  time.Time
}

func newFreshClient(c client.Client, clk clock.PassiveClock) *freshClient {
	return &freshClient{Client: c, clock: clk, recent: map[freshKey]freshWrite{}}
}

// remember notes the state that a write returned.
func (f *freshClient) remember(obj client.Object) {
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
		if now.Sub(w.at) > freshFor {
			delete(f.recent, key)
		}
	}
	f.recent[freshKey{gvk, client.ObjectKeyFromObject(obj)}] = freshWrite{stored, now}
}

func (f *freshClient) forget(obj client.Object) {
	if gvk, err := apiutil.GVKForObject(obj, f.Scheme()); err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.recent, freshKey{gvk, client.ObjectKeyFromObject(obj)})
	}
}

// newer gives the remembered object when the cache's, of resourceVersion cached ("" when it has none), is older.
func (f *freshClient) newer(key freshKey, cached string) client.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.recent[key]
	if !ok {
		return nil
	}
	if f.clock.Now().Sub(w.at) <= freshFor {
		if cached == "" {
			return w.obj
		}
		if order, err := resourceversion.CompareResourceVersion(cached, w.obj.GetResourceVersion()); err == nil && order < 0 {
			return w.obj
		}
	}
	delete(f.recent, key)
	return nil
}

// Get implements client.Reader.
func (f *freshClient) Get(ctx context.Context, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
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
	stored := f.newer(freshKey{gvk, name}, cached)
	if stored == nil {
		return err
	}
	return copyInto(stored, obj)
}

// List implements client.Reader.
func (f *freshClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := f.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	reports, ok := list.(*hyperv1.ControlPlaneComponentList)
	if !ok {
		return nil
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if options.LabelSelector != nil || options.FieldSelector != nil {
		return nil // nobody asks for some of them
	}
	known := map[client.ObjectKey]int{}
	for i := range reports.Items {
		known[client.ObjectKeyFromObject(&reports.Items[i])] = i
	}
	for name := range f.names(componentKind, options.Namespace) {
		i, listed := known[name]
		cached := ""
		if listed {
			cached = reports.Items[i].ResourceVersion
		}
		newer := f.newer(freshKey{componentKind, name}, cached)
		if newer == nil {
			continue
		}
		report := hyperv1.ControlPlaneComponent{}
		if err := copyInto(newer, &report); err != nil {
			return err
		}
		if listed {
			reports.Items[i] = report
		} else {
			reports.Items = append(reports.Items, report)
		}
	}
	return nil
}

// names are those of the kind that were written lately.
func (f *freshClient) names(kind schema.GroupVersionKind, namespace string) map[client.ObjectKey]bool {
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
func (f *freshClient) Wrote(obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, f.Scheme())
	if err != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.recent[freshKey{gvk, client.ObjectKeyFromObject(obj)}]
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
func (f *freshClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := f.Client.Create(ctx, obj, opts...); err != nil {
		return err
	}
	f.remember(obj)
	return nil
}

// Update implements client.Writer.
func (f *freshClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if err := f.Client.Update(ctx, obj, opts...); err != nil {
		return err
	}
	f.remember(obj)
	return nil
}

// Patch implements client.Writer.
func (f *freshClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := f.Client.Patch(ctx, obj, patch, opts...); err != nil {
		return err
	}
	f.remember(obj)
	return nil
}

// Apply implements client.Writer.
func (f *freshClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := f.Client.Apply(ctx, obj, opts...); err != nil {
		return err
	}
	if u, ok := obj.(client.Object); ok { // what ApplyConfigurationFromUnstructured gives, now filled with the answer
		f.remember(u)
	}
	return nil
}

// Delete implements client.Writer.
func (f *freshClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	f.forget(obj)
	return f.Client.Delete(ctx, obj, opts...)
}

// Status implements client.StatusClient.
func (f *freshClient) Status() client.SubResourceWriter {
	return freshStatus{f.Client.Status(), f}
}

type freshStatus struct {
	client.SubResourceWriter
	fresh *freshClient
}

// Patch implements client.SubResourceWriter.
func (s freshStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := s.SubResourceWriter.Patch(ctx, obj, patch, opts...); err != nil {
		return err
	}
	s.fresh.remember(obj)
	return nil
}

// Update implements client.SubResourceWriter.
func (s freshStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if err := s.SubResourceWriter.Update(ctx, obj, opts...); err != nil {
		return err
	}
	s.fresh.remember(obj)
	return nil
}
