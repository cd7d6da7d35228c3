package phase

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/packages/engine/watch"
)

// ownedFields returns the fields that our field manager owns, as the API server writes them. Somebody else who changes one of them takes it
// out of there, and that is how it is noticed.
func ownedFields(obj metav1.Object) ([]byte, bool) {
	entries := obj.GetManagedFields()
	if watch.Updated(entries) {
		return nil, false // to be migrated first
	}
	for _, f := range entries {
		if f.Manager == v1alpha1.FieldOwner && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" && f.FieldsV1 != nil {
			return f.FieldsV1.GetRawBytes(), true
		}
	}
	return nil, false
}

// covered says whether every field of desired, down to the first list, is among the owned ones.
func covered(desired map[string]any, raw []byte) bool {
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(raw)); err != nil {
		return false
	}
	return coveredBy(desired, set, true)
}

func coveredBy(desired map[string]any, set *fieldpath.Set, top bool) bool {
	for name, value := range desired {
		if top && (name == "apiVersion" || name == "kind") {
			continue
		}
		if value == nil {
			continue
		}
		element := fieldpath.PathElement{FieldName: &name}
		if set.Members.Has(element) {
			continue // as a whole
		}
		children, found := set.Children.Get(element)
		if top && name == "metadata" && found {
			value = ownMetadata(value)
		}
		fields, isMap := value.(map[string]any)
		switch {
		case !found && !(isMap && len(fields) == 0):
			return false
		case found && isMap && !coveredBy(fields, children, false):
			return false
		}
	}
	return true
}

// ownMetadata leaves out what nobody owns.
func ownMetadata(metadata any) any {
	m, ok := metadata.(map[string]any)
	if !ok {
		return metadata
	}
	out := map[string]any{}
	for _, name := range []string{"labels", "annotations"} {
		if v, ok := m[name]; ok {
			out[name] = v
		}
	}
	return out
}

// contains says whether have has every value of want. Items of others may stand between ours, as in lists that are merged by a key; in those
// that are not, ownership of the list as a whole would be lost.
func contains(have, want map[string]any) bool {
	return apply.Contains(have, want, func(string) bool { return true })
}
