// Package schema describes fields of CustomResourceDefinitions by facts, which tables hold and programs compare.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Facts are what is known about one field: name of the fact to its value in JSON. A field's type and whether it is required are
// facts, too.
type Facts map[string]string

// Kind is what is known about a CustomResourceDefinition: facts about itself under the empty path, and about its fields.
type Kind map[string]Facts

// Names returns what either of two sets of facts names, sorted.
func Names(a, b Facts) []string {
	all := map[string]bool{}
	for n := range a {
		all[n] = true
	}
	for n := range b {
		all[n] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// ParseFacts reads the last column of a table: words, and NAME=JSON, separated by spaces.
func ParseFacts(text string, into Facts) error {
	prefix := ""
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimLeft(text, " ") {
		if rest, ok := strings.CutPrefix(text, "items:"); ok {
			prefix, text = "items:", rest
			continue
		}
		end := strings.IndexAny(text, "= ")
		if end < 0 || text[end] == ' ' {
			word, rest, _ := strings.Cut(text, " ")
			into[prefix+word] = "true"
			text = rest
			continue
		}
		dec := json.NewDecoder(strings.NewReader(text[end+1:]))
		var value any
		if err := dec.Decode(&value); err != nil {
			return fmt.Errorf("the value of %s: %w", text[:end], err)
		}
		into[prefix+text[:end]] = canonical(value)
		text = text[end+1+int(dec.InputOffset()):]
	}
	return nil
}

// canonical writes a value so that equal values give equal texts.
func canonical(value any) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return fmt.Sprint(value) // what came from JSON or YAML can be written as JSON
	}
	return strings.TrimSpace(buf.String())
}
