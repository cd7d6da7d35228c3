package phase

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/owner"
)

// Teardown deletes the objects of a phase that the owner controls and lets go of the others. It says which are still there; none
// are when it is done.
//
// It reads each object itself: what a cache says must not decide about a deletion.
func (e *Engine) Teardown(ctx context.Context, o Owner, p Phase) ([]client.ObjectKey, error) {
	var waiting []client.ObjectKey
	var deleted []*item
	for i := range p.Objects {
		it, gone, err := e.teardown(ctx, o, p.Objects[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", it, err)
		}
		switch {
		case gone:
		case it.live.GetDeletionTimestamp() == nil && len(it.live.GetFinalizers()) == 0:
			deleted = append(deleted, it)
		default:
			waiting = append(waiting, it.key)
		}
	}
	// Most objects go at once, and nobody needs to wait for the watch to say so.
	for _, it := range deleted {
		live, err := e.metadata(ctx, it)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", it, err)
		}
		if live != nil && live.UID == it.live.GetUID() {
			waiting = append(waiting, it.key)
		}
	}
	return waiting, nil
}

// teardown says whether an object is gone or not ours to wait for.
func (e *Engine) teardown(ctx context.Context, o Owner, spec v1alpha1.ObjectSetObject) (*item, bool, error) {
	it := &item{spec: spec, kind: spec.Object.GroupVersionKind(), key: client.ObjectKey{Namespace: spec.Object.GetNamespace(), Name: spec.Object.GetName()}}
	mapping, err := e.Mapper.RESTMapping(it.kind.GroupKind(), it.kind.Version)
	if meta.IsNoMatchError(err) {
		return it, true, nil // no kind, no objects
	}
	if err != nil {
		return it, false, fmt.Errorf("finding its kind: %w", err)
	}
	found := target{registered: true, namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	if len(e.Rules.check(o, &spec.Object, found)) > 0 {
		return it, true, nil // it was never written, and whatever has this name is not ours
	}
	switch {
	case !found.namespaced:
		it.key.Namespace = ""
	case it.key.Namespace == "" && e.Rules.DefaultNamespace:
		it.key.Namespace = o.Namespace
	}
	if done, err := e.releaseKnown(ctx, o, it); done || err != nil {
		return it, done, err
	}
	live, err := e.metadata(ctx, it)
	if live == nil || err != nil {
		return it, err == nil, err
	}
	it.live = live
	owners, err := e.Rules.Owners.Read(live)
	if err != nil {
		return it, false, err
	}
	controller := owner.Controller(owners)
	switch {
	case !owner.Has(owners, o.Entry):
		return it, true, nil
	case controller == nil || !controller.Same(o.Entry):
		return it, true, e.release(ctx, o, it, owners)
	case live.DeletionTimestamp != nil:
		return it, false, nil
	}
	err = e.Client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.UID), ResourceVersion: ptr.To(live.ResourceVersion)})
	if apierrors.IsNotFound(err) {
		return it, true, nil
	}
	if err != nil {
		return it, false, fmt.Errorf("deleting it: %w", err)
	}
	return it, false, nil
}

// releaseKnown lets go of an object that another revision controls, as far as the watch knows, without reading it first: the patch holds only for
// the object as the watch has it. That is what becomes of most objects of a revision that is replaced.
func (e *Engine) releaseKnown(ctx context.Context, o Owner, it *item) (bool, error) {
	known, err := e.Watch.Get(ctx, it.kind, it.key)
	if err != nil {
		return false, nil //nolint:nilerr // because it is read then
	}
	owners, err := e.Rules.Owners.Read(known)
	if err != nil || !owner.Has(owners, o.Entry) {
		return false, nil //nolint:nilerr // because it is read then
	}
	if c := owner.Controller(owners); c == nil || c.Same(o.Entry) {
		return false, nil
	}
	it.live = known
	err = e.release(ctx, o, it, owners)
	if apierrors.IsConflict(err) {
		return false, nil // the watch was behind
	}
	return err == nil, err
}

// release takes the owner off an object that somebody else controls, or nobody. The label that the watch selects by goes when no owner is left
// that would need it.
func (e *Engine) release(ctx context.Context, o Owner, it *item, owners []owner.Entry) error {
	rest := owner.Remove(owners, o.Entry)
	metadata, err := e.Rules.Owners.Patch(rest)
	if err != nil {
		return err
	}
	if c := owner.Controller(rest); c == nil || c.GroupKind().Group != v1alpha1.GroupVersion.Group {
		metadata["labels"] = map[string]any{v1alpha1.CacheLabel: nil}
	}
	metadata["resourceVersion"] = it.live.GetResourceVersion()
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(it.kind)
	obj.SetNamespace(it.key.Namespace)
	obj.SetName(it.key.Name)
	err = e.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, data), client.FieldOwner(v1alpha1.FieldOwner))
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("giving it up: %w", err)
	}
	for _, other := range rest {
		e.memory.follow(other.UID, memoryKey{it.kind, it.key}, it.live.GetResourceVersion(), obj.ResourceVersion)
	}
	return nil
}

// metadata reads an object's metadata, nil when there is none.
func (e *Engine) metadata(ctx context.Context, it *item) (*metav1.PartialObjectMetadata, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(it.kind)
	err := e.Client.Get(ctx, it.key, obj)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	return obj, nil
}

// resource is for error messages.
func (e *Engine) resource(it *item) schema.GroupResource {
	return schema.GroupResource{Group: it.kind.Group, Resource: strings.ToLower(it.kind.Kind)}
}
