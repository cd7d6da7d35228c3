// Package static reads objects from memory as a client reads them from an API server.
package static

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Reader is a client.Reader over objects that don't change. The zero value is not usable.
type Reader struct {
	scheme  *runtime.Scheme
	objects map[schema.GroupKind]map[client.ObjectKey]map[string]any
}

// NewReader takes objects of any kind; scheme has the kinds that are read as Go types. Of two objects with the same name the later one counts.
func NewReader(scheme *runtime.Scheme, objs ...client.Object) (*Reader, error) {
	r := &Reader{scheme: scheme, objects: map[schema.GroupKind]map[client.ObjectKey]map[string]any{}}
	for _, obj := range objs {
		if err := r.add(obj); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Reader) add(obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return fmt.Errorf("finding the kind of %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	content["apiVersion"], content["kind"] = apiVersion, kind
	of := r.objects[gvk.GroupKind()]
	if of == nil {
		of = map[client.ObjectKey]map[string]any{}
		r.objects[gvk.GroupKind()] = of
	}
	of[client.ObjectKeyFromObject(obj)] = content
	return nil
}

// Get implements client.Reader.
func (r *Reader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return err
	}
	content, ok := r.objects[gvk.GroupKind()][key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	return fill(content, obj)
}

// List implements client.Reader: by namespace and labels, sorted by name.
func (r *Reader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, r.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = gvk.Kind[:max(len(gvk.Kind)-len("List"), 0)]
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if o.FieldSelector != nil && !o.FieldSelector.Empty() {
		return fmt.Errorf("listing %s by fields is not possible here", gvk.Kind)
	}
	of := r.objects[gvk.GroupKind()]
	var found []runtime.Object
	for _, key := range sortedKeys(of) {
		u := &unstructured.Unstructured{Object: of[key]}
		if o.Namespace != "" && key.Namespace != o.Namespace || o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(u.GetLabels())) {
			continue
		}
		obj, err := r.blank(list, gvk)
		if err != nil {
			return err
		}
		if err := fill(of[key], obj); err != nil {
			return err
		}
		found = append(found, obj)
	}
	return meta.SetList(list, found)
}

// blank is an item of list.
func (r *Reader) blank(list client.ObjectList, gvk schema.GroupVersionKind) (client.Object, error) {
	if _, ok := list.(*unstructured.UnstructuredList); ok {
		return &unstructured.Unstructured{}, nil
	}
	obj, err := r.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	typed, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", gvk)
	}
	return typed, nil
}

func fill(content map[string]any, obj client.Object) error {
	content = runtime.DeepCopyJSON(content)
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = content
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}

func sortedKeys(of map[client.ObjectKey]map[string]any) []client.ObjectKey {
	keys := make([]client.ObjectKey, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b client.ObjectKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return keys
}
