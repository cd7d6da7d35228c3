// Package supporttest walks the definitions of kinds for tests that hold internal/support to what it says.
package supporttest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/support"
)

// Leaf is a field that has no fields of its own: a plain value, a list of those, or a map with free keys.
type Leaf struct {
	// Path has [] for elements of lists, as in spec.services[].service.
	Path string
	// Type is that of the schema: string, integer, boolean, array, object.
	Type string
	// Default is what the definition writes when the user says nothing.
	Default string
	// Enum are the values there are; nil: any.
	Enum []string
}

// Leaves are those of the spec of a kind, previews included, in alphabetical order.
func Leaves(t testing.TB, kind string) []Leaf {
	t.Helper()
	crds, err := config.CRDs(config.TechPreviewSet)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		if crd.Spec.Names.Kind != kind {
			continue
		}
		var list []Leaf
		for _, v := range crd.Spec.Versions {
			collect("spec", v.Schema.OpenAPIV3Schema.Properties["spec"], &list)
		}
		return list
	}
	t.Fatalf("kind %s is not served", kind)
	return nil
}

func collect(path string, s apiextensionsv1.JSONSchemaProps, into *[]Leaf) {
	switch {
	case len(s.Properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			collect(path+"."+name, s.Properties[name], into)
		}
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil && len(s.Items.Schema.Properties) > 0:
		collect(path+"[]", *s.Items.Schema, into)
	default:
		leaf := Leaf{Path: path, Type: s.Type, Default: plain(s.Default)}
		for _, v := range s.Enum {
			leaf.Enum = append(leaf.Enum, plain(&v))
		}
		*into = append(*into, leaf)
	}
}

// plain is a JSON value as internal/support writes it: texts without quotes.
func plain(v *apiextensionsv1.JSON) string {
	if v == nil {
		return ""
	}
	var s string
	if json.Unmarshal(v.Raw, &s) == nil {
		return s
	}
	return string(v.Raw)
}

// Generic is a path of the table with [] instead of a name that picks an element.
func Generic(path string) string {
	for {
		open := strings.Index(path, "[")
		end := strings.Index(path, "]")
		if open < 0 || end == open+1 {
			return path
		}
		path = path[:open+1] + path[end:]
	}
}

// Below tells whether an entry's path covers a leaf.
func Below(entry, leaf string) bool {
	rest, ok := strings.CutPrefix(leaf, entry)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Covered are the leaves of a kind whose own entry matches.
func Covered(t testing.TB, table *support.Table, match func(support.Entry) bool) []Leaf {
	t.Helper()
	return slices.DeleteFunc(Leaves(t, table.Kind), func(l Leaf) bool {
		e, ok := table.Lookup(l.Path, "")
		return !ok || !match(e)
	})
}
