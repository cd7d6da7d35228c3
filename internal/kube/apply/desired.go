package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// serverSet are the metadata fields that the API server fills in.
var serverSet = []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation", "selfLink"}

// Desired is obj as it is sent to an API server to say what is wanted: with kind and version, with the defaults that the scheme knows of, and without status, nulls and what the server sets.
// obj isn't changed.
func Desired(scheme *runtime.Scheme, obj client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	whole := obj.DeepCopyObject()
	scheme.Default(whole)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(whole)
	if err != nil {
		return nil, fmt.Errorf("converting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	delete(u.Object, "status")
	for _, field := range serverSet {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	dropNulls(u.Object)
	return u, nil
}

// dropNulls removes null values, which Go structs without omitempty leave behind (creationTimestamp in pod templates):
// applying a null means owning its absence.
func dropNulls(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case map[string]any:
			dropNulls(v)
		case []any:
			for _, item := range v {
				if child, ok := item.(map[string]any); ok {
					dropNulls(child)
				}
			}
		}
	}
}
