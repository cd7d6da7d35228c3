package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pages "hcp.internal/platform/internal/kube/read"
)

// Bounds of a look at what would be pruned: a page is what the API server gives cheaply, and whoever has named a few losses has said enough.
const (
	prunedPage = 200
	prunedMost = 5
)

// ErrPrunes is returned by Run when the definitions that it would install lack fields that objects use: the API server would drop these at the
// next write of such an object, whoever writes. Nothing has been written then.
var ErrPrunes = errors.New("this version doesn't know fields that are in use")

// refusePruning compares the definitions that are in the cluster with those that are to replace them. Only where fields would go it reads objects.
// Fields of status don't count: the controllers of the version that is installed compute them.
func refusePruning(ctx context.Context, c client.Client, crds []client.Object) error {
	var losses []string
	for _, obj := range crds {
		want, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
		if !ok {
			continue
		}
		live := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Get(ctx, client.ObjectKeyFromObject(want), live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading CustomResourceDefinition %s: %w", want.Name, err)
		}
		for version, paths := range removedFields(live, want) {
			gvk := schema.GroupVersionKind{Group: live.Spec.Group, Version: version, Kind: live.Spec.Names.Kind}
			used, err := usersOf(ctx, c, gvk, paths)
			if err != nil {
				return err
			}
			if losses = append(losses, used...); len(losses) >= prunedMost {
				break
			}
		}
	}
	if len(losses) == 0 {
		return nil
	}
	slices.Sort(losses)
	return fmt.Errorf("%w, which the API server would drop: %s: install a version that knows them, or take them out of these objects first",
		ErrPrunes, strings.Join(losses[:min(len(losses), prunedMost)], "; "))
}

// fieldPath leads to a field through properties, items of lists ("[]") and values of maps ("{}").
type fieldPath []string

// String is the path as users write it.
func (p fieldPath) String() string {
	return strings.NewReplacer(".[]", "[]", ".{}", "{}").Replace(strings.Join(p, "."))
}

// removedFields are the fields of each served version that the definition in the cluster has and the other lacks, without status. A version that
// the other doesn't have at all is not looked at: the API server converts, or refuses.
func removedFields(live, want *apiextensionsv1.CustomResourceDefinition) map[string][]fieldPath {
	all := map[string][]fieldPath{}
	for i := range live.Spec.Versions {
		had := &live.Spec.Versions[i]
		at := slices.IndexFunc(want.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == had.Name })
		if !had.Served || at < 0 || had.Schema == nil || want.Spec.Versions[at].Schema == nil {
			continue
		}
		removed := removedFrom(nil, had.Schema.OpenAPIV3Schema, want.Spec.Versions[at].Schema.OpenAPIV3Schema)
		removed = slices.DeleteFunc(removed, func(p fieldPath) bool { return p[0] == "status" || p[0] == "metadata" })
		if len(removed) > 0 {
			all[had.Name] = removed
		}
	}
	return all
}

func removedFrom(at fieldPath, had, has *apiextensionsv1.JSONSchemaProps) []fieldPath {
	if had == nil || has == nil || ptr.Deref(has.XPreserveUnknownFields, false) {
		return nil
	}
	under := func(step string) fieldPath { return append(slices.Clone(at), step) }
	var removed []fieldPath
	for _, name := range slices.Sorted(maps.Keys(had.Properties)) {
		before := had.Properties[name]
		now, ok := has.Properties[name]
		if !ok {
			removed = append(removed, under(name))
			continue
		}
		removed = append(removed, removedFrom(under(name), &before, &now)...)
	}
	if had.Items != nil && has.Items != nil {
		removed = append(removed, removedFrom(under("[]"), had.Items.Schema, has.Items.Schema)...)
	}
	if had.AdditionalProperties != nil && has.AdditionalProperties != nil {
		removed = append(removed, removedFrom(under("{}"), had.AdditionalProperties.Schema, has.AdditionalProperties.Schema)...)
	}
	return removed
}

// usersOf names objects and which of the fields they hold, a few of them.
func usersOf(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, paths []fieldPath) (used []string, _ error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	for err := range pages.Pages(ctx, c, list, prunedPage) {
		if err != nil {
			return nil, fmt.Errorf("listing objects of kind %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			obj := &list.Items[i]
			for _, path := range paths {
				if holds(obj.Object, path) {
					used = append(used, fmt.Sprintf("%s of %s %s", path, gvk.Kind, strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")))
				}
			}
			if len(used) >= prunedMost {
				return used, nil
			}
		}
	}
	return used, nil
}

// holds tells whether there is a value at the path, in any item on the way.
func holds(value any, path fieldPath) bool {
	if len(path) == 0 {
		return value != nil
	}
	switch node := value.(type) {
	case map[string]any:
		if path[0] == "{}" {
			return slices.ContainsFunc(slices.Collect(maps.Values(node)), func(v any) bool { return holds(v, path[1:]) })
		}
		return holds(node[path[0]], path[1:])
	case []any:
		return path[0] == "[]" && slices.ContainsFunc(node, func(v any) bool { return holds(v, path[1:]) })
	default:
		return false
	}
}
