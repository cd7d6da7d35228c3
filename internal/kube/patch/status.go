package patch

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operation is one step of an RFC 6902 patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// statusPatch is the difference between the statuses as a JSON patch, nil when there is none.
//
// It is no merge patch because that has no way to write a null, which fields that are required and nullable need
// (history[].completionTime of a version). Lists are replaced as a whole, objects field by field, so that fields this
// program does not know stay.
func statusPatch(before, after client.Object) (client.Patch, error) {
	from, err := statusOf(before)
	if err != nil {
		return nil, err
	}
	to, err := statusOf(after)
	if err != nil {
		return nil, err
	}
	ops := difference("/status", from, to)
	if len(ops) == 0 {
		return nil, nil
	}
	// Replacing the version makes the server compare it, and answer with a conflict; a test operation would be answered as an invalid object.
	ops = append([]operation{{"replace", "/metadata/resourceVersion", before.GetResourceVersion()}}, ops...)
	data, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, data), nil
}

// statusOf is the status as generic JSON, nil when there is none.
func statusOf(obj client.Object) (any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	var object struct {
		Status any `json:"status"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("decoding %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return object.Status, nil
}

// difference lists what turns from into to. An object without any value counts as absent in from: Go writes required fields also when the
// server has none, and nothing can be added below what does not exist.
func difference(path string, from, to any) []operation {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	target, ok := to.(map[string]any)
	if !ok {
		return []operation{{"add", path, to}}
	}
	source, ok := from.(map[string]any)
	if !ok || empty(source) {
		return []operation{{"add", path, to}}
	}
	var ops []operation
	for _, key := range slices.Sorted(maps.Keys(source)) {
		if _, kept := target[key]; !kept {
			ops = append(ops, operation{Op: "remove", Path: path + "/" + escape(key)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(target)) {
		old, known := source[key]
		if !known {
			ops = append(ops, operation{"add", path + "/" + escape(key), target[key]})
			continue
		}
		ops = append(ops, difference(path+"/"+escape(key), old, target[key])...)
	}
	return ops
}

// empty reports whether a JSON value holds nothing but zeros.
func empty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, child := range v {
			if !empty(child) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	case nil:
		return true
	}
	return reflect.ValueOf(v).IsZero()
}

// escape writes a key as a part of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
