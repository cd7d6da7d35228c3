package objecttemplate

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/packages/engine/watch"
)

// sourceIndex knows which templates read an object.
type sourceIndex struct {
	mu      sync.Mutex
	readers map[sourceKey]map[client.ObjectKey]struct{}
	reads   map[client.ObjectKey][]sourceKey
}

type sourceKey struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
}

// set replaces what a template reads.
func (x *sourceIndex) set(reader client.ObjectKey, keys []sourceKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.readers == nil {
		x.readers, x.reads = map[sourceKey]map[client.ObjectKey]struct{}{}, map[client.ObjectKey][]sourceKey{}
	}
	for _, key := range x.reads[reader] {
		delete(x.readers[key], reader)
		if len(x.readers[key]) == 0 {
			delete(x.readers, key)
		}
	}
	delete(x.reads, reader)
	for _, key := range keys {
		if x.readers[key] == nil {
			x.readers[key] = map[client.ObjectKey]struct{}{}
		}
		x.readers[key][reader] = struct{}{}
		x.reads[reader] = append(x.reads[reader], key)
	}
}

func (x *sourceIndex) requests(obj *metav1.PartialObjectMetadata) []reconcile.Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []reconcile.Request
	for reader := range x.readers[sourceKey{obj.GroupVersionKind(), client.ObjectKeyFromObject(obj)}] {
		out = append(out, reconcile.Request{NamespacedName: reader})
	}
	return out
}

// watchSources watches the kinds of the sources, and of the object that was made before. It says late when no event tells of some yet.
func (r *Reconciler) watchSources(ctx context.Context, ot *v1alpha1.ObjectTemplate) (late bool, _ error) {
	var keys []sourceKey
	var objects []v1alpha1.ObjectSetObject
	use := func(kind schema.GroupVersionKind) {
		obj := unstructured.Unstructured{}
		obj.SetGroupVersionKind(kind)
		objects = append(objects, v1alpha1.ObjectSetObject{Object: obj})
	}
	for _, s := range ot.Spec.Sources {
		kind := schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
		key := client.ObjectKey{Namespace: s.Namespace, Name: s.Name}
		if key.Namespace == "" {
			key.Namespace = ot.Namespace
		}
		keys = append(keys, sourceKey{kind, key})
		use(kind)
	}
	if c := ot.Status.ControllerOf; c != nil && c.Version != "" {
		use(schema.GroupVersionKind{Group: c.Group, Version: c.Version, Kind: c.Kind})
	}
	r.sources.set(client.ObjectKeyFromObject(ot), keys)
	return r.Engine.Use(ctx, r.owner(ot), objects)
}

// workers is how many templates are worked on at a time. Most of it is waiting for the API server; Share bounds how many are rendered.
const workers = 8

// SetupWithManager adds the controller. Changes of sources and objects come from watches, those of the environment from who knows it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, watches *watch.Cache) error {
	kind := r.Scope.Kind("ObjectTemplate")
	// The first pass knows what it makes only at its end; the status that it writes brings the next one, which watches it.
	changed := predicate.ResourceVersionChangedPredicate{}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(r.Scope.Kind("objecttemplate")).
		For(r.Scope.Object(&v1alpha1.ObjectTemplate{}), builder.WithPredicates(changed)).
		WatchesRawSource(watches.Mapped(r.sources.requests)).
		WatchesRawSource(r.Environment.Watch(r.Scope, r.Client, &v1alpha1.ObjectTemplateList{})).
		WatchesRawSource(watches.Owned(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: kind}, r.Engine.Rules.Owners, r.Engine.Known)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(outcome.Wrap(r))
	if err != nil {
		return fmt.Errorf("setting up the controller of %ss: %w", kind, err)
	}
	return nil
}
