package openshift

import (
	"encoding/json"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// section is the map at a path, made where there is none; what is in its way is replaced.
func section(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		next, ok := object[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[key] = next
		}
		object = next
	}
	return object
}

// peek is the map at a path, nil where there is none.
func peek(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

// text is the text at a path, empty where there is none.
func text(object map[string]any, path ...string) string {
	s, _ := peek(object, path[:len(path)-1]...)[path[len(path)-1]].(string)
	return s
}

// setOrDrop sets a text, and removes the field where it is empty.
func setOrDrop(object map[string]any, key, value string) {
	if value == "" {
		delete(object, key)
		return
	}
	object[key] = value
}

// setIfEmpty sets a field that is absent, or a text that is empty.
func setIfEmpty(object map[string]any, key string, value any) {
	if old, ok := object[key]; !ok || old == nil || old == "" {
		object[key] = value
	}
}

// encoded is a value as an API server sends it: numbers are int64 or float64.
func encoded(value any) map[string]any {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encoding a %T: %v", value, err)) // types of the API, which came in as JSON
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		panic(fmt.Sprintf("decoding a %T: %v", value, err))
	}
	return object
}

// texts and list are maps and lists of texts as JSON has them.
func texts(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func list[T ~string](items ...T) []any {
	out := make([]any, 0, len(items))
	for _, item := range items {
		out = append(out, string(item))
	}
	return out
}

// isEmpty says whether nothing is in a map, but for maps with nothing in them.
func isEmpty(m map[string]any) bool {
	for _, v := range m {
		child, ok := v.(map[string]any)
		if !ok || !isEmpty(child) {
			return false
		}
	}
	return true
}

// setList sets a list, and removes the field where it is empty.
func setList(object map[string]any, key string, items []any) {
	if len(items) == 0 {
		delete(object, key)
		return
	}
	object[key] = items
}
