package gotemplate

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"

	"k8s.io/client-go/util/jsonpath"
)

// Bounds of what the sources of one template give.
const (
	// maxKey is the length of a JSONPath, as in the definition of the kind.
	maxKey = 1024
	// maxSteps is how many values all JSONPaths of one template may look at; each takes about a microsecond.
	maxSteps = 1 << 20
)

var (
	errKey     = fmt.Errorf("longer than %d bytes", maxKey)
	errSteps   = errors.New("unions, filters and recursion make it look at too many values: name the place more exactly")
	errPaths   = fmt.Errorf("keys look at more than %d values together: name the places more exactly, or take them from smaller objects", maxSteps)
	errRange   = errors.New("range and end are not supported in keys")
	errSources = fmt.Errorf("values of all sources are larger than %d MiB together", maxValue>>20)
)

// relaxed are paths with or without braces and leading dot.
var relaxed = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

// pathOf writes a path the way that the library wants it: {.a.b}.
func pathOf(text string) (string, error) {
	if m := relaxed.FindStringSubmatch(text); m != nil {
		return "{." + m[1] + m[2] + "}", nil
	}
	return "", fmt.Errorf("unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}': %q", text)
}

// Paths evaluates JSONPaths within bounds. The library has none: a union of a thousand fields, three times in a row, gives 10⁹ values.
type Paths struct {
	// steps and bytes are what is left.
	steps, bytes int
}

// NewPaths returns the bounds for the keys of one ObjectTemplate.
func NewPaths() *Paths { return &Paths{steps: maxSteps, bytes: maxValue} }

// At is the value that a key finds, a list when there are several.
func (p *Paths) At(key string, object map[string]any) (any, error) {
	if len(key) > maxKey {
		return nil, errKey
	}
	path, err := pathOf(key)
	if err != nil {
		return nil, err
	}
	parsed, err := jsonpath.Parse("key", path)
	if err != nil {
		return nil, err
	}
	if err := p.spend(parsed.Root, object); err != nil {
		return nil, err
	}
	j := jsonpath.New("key")
	if err := j.Parse(path); err != nil {
		return nil, err
	}
	found, err := j.FindResults(object)
	if err != nil {
		return nil, Short(err)
	}
	var values []any
	if len(found) > 0 {
		for _, v := range found[0] {
			if err := measure(v, &p.bytes, 0); errors.Is(err, errValue) {
				return nil, errSources
			} else if err != nil {
				return nil, err
			}
			values = append(values, v.Interface())
		}
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encoding what it gives: %w", err)
	}
	var out []any
	if err := json.Unmarshal(encoded, &out); err != nil {
		return nil, fmt.Errorf("reading what it gives: %w", err)
	}
	if out == nil {
		out = []any{}
	}
	if len(out) == 1 {
		return out[0], nil
	}
	return out, nil
}

// spend takes what a path may look at from what is left: each value below the object once, times the ways to get there.
func (p *Paths) spend(root *jsonpath.ListNode, object map[string]any) error {
	w := ways{count: 1}
	if err := w.list(root, false); err != nil {
		return err
	}
	if w.recursions > 0 {
		w.count *= 1 + w.filtered
	}
	nodes := 0
	if w.spreads {
		nodes = nodesBelow(reflect.ValueOf(object))
	}
	if w.recursions > 1 || (1+nodes)*w.count > maxSteps {
		return errSteps
	}
	if p.steps -= (1+nodes)*w.count + w.nodes; p.steps < 0 {
		return errPaths
	}
	return nil
}

// ways counts in how many ways a path may get to one value.
type ways struct {
	count, recursions, filtered, nodes int
	// spreads: the path may look at more than one value in a step.
	spreads bool
}

func (w *ways) list(list *jsonpath.ListNode, filter bool) error {
	for _, node := range list.Nodes {
		w.nodes++
		if filter {
			w.filtered++
		}
		var err error
		switch n := node.(type) {
		case *jsonpath.ListNode:
			err = w.list(n, filter)
		case *jsonpath.UnionNode:
			if w.spreads = true; w.count <= maxSteps {
				w.count *= max(1, len(n.Nodes))
			}
			for _, each := range n.Nodes {
				err = errors.Join(err, w.list(each, filter))
			}
		case *jsonpath.FilterNode:
			w.spreads = true
			err = errors.Join(w.list(n.Left, true), w.list(n.Right, true))
		case *jsonpath.RecursiveNode:
			w.spreads = true
			w.recursions++
		case *jsonpath.WildcardNode, *jsonpath.ArrayNode:
			w.spreads = true
		case *jsonpath.IdentifierNode:
			return errRange
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nodesBelow counts the values of an object, as far as the bound goes.
func nodesBelow(v reflect.Value) int {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	n := 1
	switch v.Kind() {
	case reflect.Map:
		for iter := v.MapRange(); iter.Next() && n <= maxSteps; {
			n += nodesBelow(iter.Value())
		}
	case reflect.Slice:
		for i := 0; i < v.Len() && n <= maxSteps; i++ {
			n += nodesBelow(v.Index(i))
		}
	}
	return n
}
