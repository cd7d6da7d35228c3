package support

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Finding is something that is set and that nobody heeds.
type Finding struct {
	// Field is where, as in spec.services[2] or metadata.annotations[key].
	Field string
	Entry Entry
}

// String is the finding as a user reads it.
func (f Finding) String() string { return f.Field + ": " + f.Entry.Text }

// pickedBy are the lists whose elements an entry can pick, and the field that has their name.
var pickedBy = map[string]string{"spec.services": "service"}

// Findings are what is set in a spec and refused or not heeded on a platform, one for each entry, in the order of the table. spec is what JSON
// makes of it.
func (t *Table) Findings(spec map[string]any, platform string) []Finding {
	return t.FindingsOf(spec, platform, false)
}

// FindingsOf is Findings; payload: of what becomes of the spec with an OpenShift payload.
func (t *Table) FindingsOf(spec map[string]any, platform string, payload bool) []Finding {
	found := map[string]Finding{}
	walk([]string{"spec"}, "spec", spec, func(spellings []string, field, value string) {
		e, ok := t.lookup(spellings, value)
		if payload {
			e = e.ForPayloads()
		}
		verdict := e.On(platform)
		if !ok || e.Quiet || verdict != NotHeeded && verdict != Refused || e.Default != "" && value == e.Default {
			return
		}
		e.Verdict = verdict
		if _, again := found[e.Path]; !again {
			found[e.Path] = Finding{Field: cut(field, e.Path), Entry: e}
		}
	})
	for _, r := range t.Rules {
		if field, applies := r.Applies(spec); applies && (!payload || r.Entry.Payload == "") {
			found[r.Entry.Path] = Finding{Field: field, Entry: r.Entry}
		}
	}
	list := slices.Collect(maps.Values(found))
	order := func(f Finding) int {
		return slices.IndexFunc(t.Entries, func(e Entry) bool { return e.Path == f.Entry.Path })
	}
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(a.Field, b.Field))
	})
	return list
}

// cut shortens the path of a leaf to the depth of the entry that covers it; one with a value keeps it.
func cut(field, entry string) string {
	path, value, picked := strings.Cut(entry, "=")
	segments := strings.Split(field, ".")
	field = strings.Join(segments[:min(len(segments), strings.Count(path, ".")+1)], ".")
	if open := strings.LastIndex(field, "["); open > 0 && strings.HasSuffix(field, "]") && !strings.HasSuffix(path, "]") {
		field = field[:open] // the entry is about the list
	}
	if picked {
		return field + " " + value
	}
	return field
}

// walk visits the leaves of a value. spellings are the path with [] for the elements of lists and, where elements can be picked, with the name
// of the element; field has their numbers.
func walk(spellings []string, field string, value any, visit func(spellings []string, field, value string)) {
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			walk(appended(spellings, "."+k), field+"."+k, v[k], visit)
		}
	case []any:
		for i, element := range v {
			paths := appended(spellings, "[]")
			if key, ok := pickedBy[spellings[len(spellings)-1]]; ok {
				if m, isMap := element.(map[string]any); isMap {
					paths = append([]string{fmt.Sprintf("%s[%v]", spellings[0], m[key])}, paths...)
				}
			}
			walk(paths, fmt.Sprintf("%s[%d]", field, i), element, visit)
		}
	default:
		// Go writes fields that are not set as zeros, and as a wish they mean nothing either.
		if plain := text(v); !slices.Contains([]string{"", "0", "false", "null"}, plain) {
			visit(spellings, field, plain)
		}
	}
}

func appended(paths []string, suffix string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = p + suffix
	}
	return out
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// ours are the groups of annotations that are for our operators; a key of them that nobody knows is a mistake.
var ours = []string{"hypershift.openshift.io/", "oauth.hypershift.openshift.io/", "idpoverrides.hypershift.openshift.io/"}

// unknown is told of an annotation that nobody knows.
var unknown = Entry{Verdict: NotHeeded, Text: "no annotation has this name: correct it, or remove it"}

// AnnotationFindings are the annotations that nobody heeds, sorted by key. payload: the release is one of OpenShift. off are the parts that the
// installation lacks.
func AnnotationFindings(annotations map[string]string, payload bool, off ...Switch) []Finding {
	var found []Finding
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		e, known := Annotation(key)
		if payload {
			e = e.ForPayloads()
		}
		switch {
		case known && e.Verdict == NotHeeded && !e.Quiet:
		case known && e.Needs != "" && slices.Contains(off, e.Needs):
			e.Verdict, e.Text = NotHeeded, fmt.Sprintf("this installation lacks %s, which it needs: install with that, or remove it", e.Needs)
		case !known && slices.ContainsFunc(ours, func(group string) bool { return strings.HasPrefix(key, group) }):
			e = unknown
		default:
			continue
		}
		found = append(found, Finding{Field: "metadata.annotations[" + key + "]", Entry: e})
	}
	return found
}

// maxTold bounds how many findings a message lists; a message has at most 32 KiB.
const maxTold = 30

// Message tells of findings, of the first thirty at most.
func Message(found []Finding) string {
	var told []string
	for _, f := range found[:min(len(found), maxTold)] {
		told = append(told, f.String())
	}
	message := strings.Join(told, "; ")
	if more := len(found) - maxTold; more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return message
}
