package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestConditionsAreExplained fails for a condition type without an entry in docs/conditions.md.
func TestConditionsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../api/*/*/conditions*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of conditions: %v", err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || strings.Contains(spec.Names[0].Name, "Reason") {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			kind, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			group, name, qualified := strings.Cut(kind, "/")
			short := qualified && strings.Contains(string(page), "`"+group+"/") && strings.Contains(string(page), "`…/"+name+"`")
			if !short && !strings.Contains(string(page), "`"+kind+"`") {
				t.Errorf("%s: docs/conditions.md does not explain %s, of %s", filepath.Base(file), kind, spec.Names[0].Name)
			}
			return true
		})
	}
}
