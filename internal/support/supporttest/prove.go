package supporttest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hcp.internal/platform/internal/support"
)

// Renderer makes text of a spec that encoding/json made: everything that is done with it. It may fail: fields that lead to an error are read, too.
// ok is false for a spec that is not even one of the kind.
type Renderer func(spec map[string]any) (text string, ok bool)

// Proof changes fields of specs and renders them. A field that By is said to heed must change what is rendered for one of the bases; a field that
// nobody heeds on the platform, for none.
type Proof struct {
	Table *support.Table
	// By is the package below internal/ that runs the proof.
	By       string
	Platform string
	// Bases are specs to start from, by name. Fields that matter only beside others need one that has those.
	Bases  map[string]map[string]any
	Render Renderer
	// Nothing looks for changes by fields that nobody heeds, too.
	Nothing bool
	// Payload: the verdicts are those for OpenShift payloads.
	Payload bool
}

// entry is what the table says of a field.
func (p Proof) entry(path, value string) (support.Entry, bool) {
	e, ok := p.Table.Lookup(path, value)
	if p.Payload {
		e = e.ForPayloads()
	}
	return e, ok
}

// Run runs the proof.
func (p Proof) Run(t *testing.T) {
	before := map[string]string{}
	for name, base := range p.Bases {
		text, ok := p.Render(copied(base))
		if !ok {
			t.Fatalf("base %s is no spec", name)
		}
		before[name] = text
	}
	unheeded := map[string][]Leaf{} // by the path of their entry
	for _, leaf := range Leaves(t, p.Table.Kind) {
		e, _ := p.entry(leaf.Path, "")
		switch {
		case e.On(p.Platform) == support.Heeded && slices.Contains(strings.Fields(e.By), p.By):
			if !p.changes(leaf, Candidates(leaf), before) {
				t.Errorf("%s: the table says that %s heeds it, but nothing that is rendered changes with it", leaf.Path, p.By)
			}
		case p.Payload && e.Payload == support.NotHeeded: // said of payloads alone: components may be told of what nobody makes
		case e.On(p.Platform) == support.NotHeeded && p.Nothing && !e.Quiet:
			unheeded[e.Path] = append(unheeded[e.Path], leaf)
		}
	}
	var all []Leaf
	for _, path := range sortedKeys(unheeded) {
		all = append(all, unheeded[path]...)
	}
	if p.togetherNothing(all, before) {
		return
	}
	for _, path := range sortedKeys(unheeded) {
		if !p.togetherNothing(unheeded[path], before) {
			for _, leaf := range unheeded[path] {
				if p.changes(leaf, p.ordinary(leaf), before) {
					t.Errorf("%s: the table says that nobody heeds it, but something that is rendered changes with it", leaf.Path)
				}
			}
		}
	}
}

// togetherNothing sets all fields of an entry at once and tells whether nothing changes, as it should. It is false, too, when that makes no spec.
func (p Proof) togetherNothing(leaves []Leaf, before map[string]string) bool {
	for _, name := range sortedKeys(p.Bases) {
		spec := copied(p.Bases[name])
		for _, leaf := range leaves {
			values := p.ordinary(leaf)
			if strings.Contains(strings.ToLower(leaf.Path), "timeout") {
				values = []any{"17m"}
			}
			if len(values) > 0 {
				Set(spec, leaf.Path, values[0])
			}
		}
		if text, ok := p.Render(spec); !ok || text != before[name] {
			return false
		}
	}
	return true
}

// ordinary are the values of a field that have no verdict of their own.
func (p Proof) ordinary(leaf Leaf) []any {
	return slices.DeleteFunc(Candidates(leaf), func(value any) bool {
		e, ok := p.entry(leaf.Path, textOf(value))
		general, _ := p.entry(leaf.Path, "")
		return ok && e.Path == leaf.Path+"="+textOf(value) && general.Verdict != e.Verdict
	})
}

// changes tells whether any of the values of a field changes anything.
func (p Proof) changes(leaf Leaf, values []any, before map[string]string) bool {
	for _, value := range values {
		for _, name := range p.likely(leaf) {
			spec := copied(p.Bases[name])
			Set(spec, leaf.Path, value)
			text, ok := p.Render(spec)
			if !ok {
				break // for no base
			}
			if text != before[name] {
				return true
			}
		}
	}
	return false
}

// likely are the bases, those first that have what a field is a part of.
func (p Proof) likely(leaf Leaf) []string {
	names := sortedKeys(p.Bases)
	slices.SortStableFunc(names, func(a, b string) int { return depth(p.Bases[b], leaf.Path) - depth(p.Bases[a], leaf.Path) })
	return names
}

// depth is how many steps of a path a spec has.
func depth(spec map[string]any, path string) int {
	at, n := spec, 0
	for s := range strings.SplitSeq(strings.TrimPrefix(path, "spec."), ".") {
		next := at[strings.TrimSuffix(s, "[]")]
		if list, ok := next.([]any); ok && len(list) > 0 {
			next = list[0]
		}
		if next == nil {
			return n
		}
		n++
		if at, _ = next.(map[string]any); at == nil {
			return n
		}
	}
	return n
}

func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, _ := json.Marshal(v)
	return string(raw)
}

// Candidates are values for a field, of which at least one is valid and not what it is in any base.
func Candidates(leaf Leaf) []any {
	var values []any
	switch {
	case len(leaf.Enum) > 0 && leaf.Type == "array":
		for _, v := range leaf.Enum {
			values = append(values, []any{v})
		}
	case len(leaf.Enum) > 0:
		for _, v := range leaf.Enum {
			if n, err := strconv.Atoi(v); err == nil && leaf.Type == "integer" {
				values = append(values, int64(n))
			} else {
				values = append(values, v)
			}
		}
	case leaf.Type == "boolean":
		values = []any{true, false}
	case leaf.Type == "integer" || leaf.Type == "number":
		values = []any{int64(7), int64(25)}
	case leaf.Type == "object":
		values = []any{map[string]any{"changed": "changed"}, map[string]any{}}
	case leaf.Type == "array":
		values = []any{[]any{"changed"}, []any{"10.99.0.0/16"}, []any{map[string]any{"changed": "changed"}}}
	default:
		values = []any{"changed", "10.99.0.0/16", "10.99.0.1", "https://changed.example.com", "17m", "17Gi", "31000-31999", "17%", int64(17)}
	}
	return values
}

// Set puts a value at a path such as spec.services[].service, into the first element of each list.
func Set(spec map[string]any, path string, value any) {
	segments := strings.Split(strings.TrimPrefix(path, "spec."), ".")
	at := spec
	for _, s := range segments[:len(segments)-1] {
		name, list := strings.CutSuffix(s, "[]")
		if !list {
			next, ok := at[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[name] = next
			}
			at = next
			continue
		}
		elements, _ := at[name].([]any)
		if len(elements) == 0 {
			elements = []any{map[string]any{}}
			at[name] = elements
		}
		next, ok := elements[0].(map[string]any)
		if !ok {
			next = map[string]any{}
			elements[0] = next
		}
		at = next
	}
	at[segments[len(segments)-1]] = value
}

func copied(spec map[string]any) map[string]any {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}
