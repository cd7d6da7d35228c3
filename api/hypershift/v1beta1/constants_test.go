package v1beta1

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// constant is a string constant and where it is declared.
type constant struct{ name, value, doc string }

// constants returns the untyped string constants of a file of this package.
func constants(t *testing.T, file string) []constant {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var out []constant
	for _, decl := range f.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			lit, ok := v.Values[0].(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				continue
			}
			value, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, constant{name: v.Names[0].Name, value: value, doc: v.Doc.Text() + gen.Doc.Text()})
		}
	}
	if len(out) == 0 {
		t.Fatalf("no constants in %s", file)
	}
	return out
}

// An API server rejects conditions whose type or reason is malformed, and with them the whole status.
func TestConditionsAreWellFormed(t *testing.T) {
	reason := regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	for _, file := range []string{"conditions_hostedcluster.go", "conditions_capacity.go", "conditions_nodepool.go", "reasons.go"} {
		for _, c := range constants(t, file) {
			switch {
			case c.name == "AllIsWellMessage":
			case strings.HasSuffix(c.name, "Reason"):
				if !reason.MatchString(c.value) {
					t.Errorf("%s: the reason %q is malformed", c.name, c.value)
				}
			default:
				if msgs := validation.IsQualifiedName(c.value); len(msgs) > 0 {
					t.Errorf("%s: the condition type %q is malformed: %v", c.name, c.value, msgs)
				}
			}
		}
	}
}

func TestKeysAreWellFormed(t *testing.T) {
	for _, file := range []string{"keys_hostedcluster.go", "keys_objects.go"} {
		seen := map[string]string{}
		for _, c := range constants(t, file) {
			if !strings.HasPrefix(c.doc, c.name+" ") {
				t.Errorf("%s has no comment of its own", c.name)
			}
			key := c.value
			if strings.Contains(c.name, "Prefix") {
				key = strings.TrimRight(key, "/.") // what follows is checked where it is put together
			}
			if msgs := validation.IsQualifiedName(key); len(msgs) > 0 {
				t.Errorf("%s: the key %q is malformed: %v", c.name, c.value, msgs)
			}
			// One key has one name in each file, except where kinds have keys of the same spelling.
			if first, ok := seen[c.value]; ok && !strings.HasSuffix(c.name, "Finalizer") && c.name != "NodePoolLabel" {
				t.Errorf("%s and %s are both %q", first, c.name, c.value)
			}
			seen[c.value] = c.name
		}
	}
}
