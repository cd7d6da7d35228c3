// Package fieldpath says in which fields two states of an object differ, and who manages those fields.
//
// It is for people: paths read as in `kubectl explain`, values are cut short, and those of Secrets are never shown.
package fieldpath

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/clip"
)

const (
	// maxFields bounds what Flatten holds of one object; what is beyond is not compared.
	maxFields = 8192
	// maxValue is how many bytes of a value are kept as they are; of a longer one, the start and a hash.
	maxValue = 80
)

// Field is a leaf of an object.
type Field struct {
	// Segments lead to the field: names of fields and keys of maps; an item of a list is "[type=Ready]", or its position, "[0]".
	Segments []string
	// Value is the JSON of the leaf, cut short.
	Value string
}

// Fields are the leaves of an object by their printed paths.
type Fields map[string]Field

// Flatten takes an object apart. What the API server changes at each write by itself is left out: the resource version, the generation and
// the managed fields.
func Flatten(object map[string]any) Fields {
	f := flattener{fields: Fields{}, secret: object["kind"] == "Secret"}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		f.add([]string{key}, object[key])
	}
	return f.fields
}

type flattener struct {
	fields Fields
	secret bool
}

// own are the fields that differ after each write, whatever was written.
var own = map[string]bool{"metadata.resourceVersion": true, "metadata.managedFields": true, "metadata.generation": true}

func (f *flattener) add(path []string, value any) {
	if len(f.fields) >= maxFields || len(path) == 2 && own[path[0]+"."+path[1]] {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				f.add(append(slices.Clone(path), key), v[key])
			}
			return
		}
	case []any:
		if len(v) > 0 {
			for i, name := range itemNames(v) {
				f.add(append(slices.Clone(path), name), v[i])
			}
			return
		}
	}
	f.fields[Print(path)] = Field{Segments: path, Value: f.text(path, value)}
}

func (f *flattener) text(path []string, value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		raw = []byte(strconv.Quote(err.Error()))
	}
	hash := func() string { sum := sha256.Sum256(raw); return fmt.Sprintf("%x", sum[:4]) }
	if f.secret && (path[0] == "data" || path[0] == "stringData") {
		return "(secret " + hash() + ")"
	}
	if len(raw) > maxValue {
		return clip.To(string(raw), maxValue) + "… (" + strconv.Itoa(len(raw)) + " bytes, " + hash() + ")"
	}
	return string(raw)
}

// keys are the fields by which items of Kubernetes' lists are known, the usual ones first.
var keys = []string{"type", "name", "uid", "key", "ip"}

// itemNames names the items of a list by a field that is different in each, else by their positions, so that an item that is added in front
// does not make all others look changed.
func itemNames(list []any) []string {
	names := make([]string, len(list))
	for _, key := range keys {
		seen := map[string]bool{}
		for i, item := range list {
			object, _ := item.(map[string]any)
			if s, ok := object[key].(string); ok && !seen[s] {
				seen[s] = true
				names[i] = "[" + key + "=" + s + "]"
			}
		}
		if len(seen) == len(list) {
			return names
		}
	}
	for i := range list {
		names[i] = "[" + strconv.Itoa(i) + "]"
	}
	return names
}

// Print joins segments as people write them: spec.selector.matchLabels[example.com/name].
func Print(segments []string) string {
	var b strings.Builder
	for i, s := range segments {
		switch {
		case strings.HasPrefix(s, "["):
			b.WriteString(s)
		case strings.ContainsAny(s, "./"):
			b.WriteString("[" + s + "]")
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s)
		}
	}
	return b.String()
}

// Change is a field that differs; an empty value means that there is none on that side.
type Change struct {
	Path          string
	Before, After string
	segments      []string
}

func (c Change) String() string {
	show := func(v string) string {
		if v == "" {
			return "(none)"
		}
		return v
	}
	return c.Path + ": " + show(c.Before) + " → " + show(c.After)
}

// Changes are the fields that differ, by path.
func Changes(before, after Fields) []Change {
	var changes []Change
	for path, was := range before {
		if is, ok := after[path]; !ok || is.Value != was.Value {
			changes = append(changes, Change{path, was.Value, is.Value, was.Segments})
		}
	}
	for path, is := range after {
		if _, ok := before[path]; !ok {
			changes = append(changes, Change{path, "", is.Value, is.Segments})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

// Managers names who manages a changed field by the managed fields of any of the states: who took a field out manages it no longer.
func (c Change) Managers(states ...[]metav1.ManagedFieldsEntry) []string {
	return Managers(c.segments, states...)
}

// Managers names, sorted, who manages the field at segments in any of the states.
func Managers(segments []string, states ...[]metav1.ManagedFieldsEntry) []string {
	names := map[string]bool{}
	for _, entries := range states {
		for _, e := range entries {
			fields := map[string]any{}
			if e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil || !manages(fields, segments) {
				continue
			}
			names[e.Manager] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Owners says who manages each field, as far as managed fields tell: the value of a Field is the names of its managers. Of an object whose
// content isn't known it shows that managers take a field from each other.
func Owners(entries []metav1.ManagedFieldsEntry) Fields {
	owners := Fields{}
	for _, e := range entries {
		fields := map[string]any{}
		if e.FieldsV1 != nil && json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) == nil {
			owners.own(nil, fields, e.Manager)
		}
	}
	return owners
}

func (f Fields) own(path []string, fields map[string]any, manager string) {
	for name, below := range fields {
		kind, rest, _ := strings.Cut(name, ":")
		next, _ := below.(map[string]any)
		segment := rest
		switch kind {
		case "f":
		case "k", "v":
			segment = "[" + rest + "]"
		default: // ".", the item or map itself
			continue
		}
		at := append(slices.Clone(path), segment)
		if len(next) > 0 {
			f.own(at, next, manager)
			continue
		}
		printed := Print(at)
		if len(f) >= maxFields && f[printed].Value == "" {
			continue
		}
		managers := append(strings.FieldsFunc(f[printed].Value, func(r rune) bool { return r == ',' }), manager)
		slices.Sort(managers)
		f[printed] = Field{Segments: at, Value: strings.Join(slices.Compact(managers), ",")}
	}
}

// Writers names, sorted, whose entries differ between two states: who wrote between them. Entries have times of whole seconds, so a second
// write within one that touches the same fields can't be told.
func Writers(before, after []metav1.ManagedFieldsEntry) []string {
	id := func(e metav1.ManagedFieldsEntry) string {
		return e.Manager + "/" + string(e.Operation) + "/" + e.Subresource + "/" + e.APIVersion
	}
	was := map[string]metav1.ManagedFieldsEntry{}
	for _, e := range before {
		was[id(e)] = e
	}
	names := map[string]bool{}
	for _, e := range after {
		old, ok := was[id(e)]
		if !ok || !e.Time.Equal(old.Time) || e.FieldsV1.String() != old.FieldsV1.String() {
			names[e.Manager] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// manages walks through the form that metav1.FieldsV1 describes: "f:" before names of fields, "k:" before the keys of a list's item.
func manages(fields map[string]any, segments []string) bool {
	if len(segments) == 0 {
		return true
	}
	if len(fields) == 0 {
		return true // the whole of what is here
	}
	if s := segments[0]; strings.HasPrefix(s, "[") {
		return managesItem(fields, s, segments[1:])
	}
	next, ok := fields["f:"+segments[0]].(map[string]any)
	return ok && manages(next, segments[1:])
}

func managesItem(fields map[string]any, item string, rest []string) bool {
	key, value, named := strings.Cut(strings.Trim(item, "[]"), "=")
	for name, below := range fields {
		next, _ := below.(map[string]any)
		object := map[string]any{}
		raw, isKey := strings.CutPrefix(name, "k:")
		if !isKey || json.Unmarshal([]byte(raw), &object) != nil {
			continue
		}
		// A position says nothing about the key of an item, so any item will do.
		if (!named || object[key] == nil || object[key] == value) && manages(next, rest) {
			return true
		}
	}
	return false
}
