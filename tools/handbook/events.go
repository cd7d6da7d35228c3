package main

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
)

// Events are the reasons of events that the code below a folder tells by names of its own, with the files that do. Those that are reasons or types of
// conditions have pages already.
func Events(dir string) (map[string]string, error) {
	// Constants by folder first: a file may use those of its neighbours.
	known := map[string]map[string]string{}
	err := goFiles(dir, func(path string, file *ast.File) {
		folder := filepath.Dir(path)
		if known[folder] == nil {
			known[folder] = map[string]string{}
		}
		for name, c := range constants(file) {
			known[folder][name] = c.value
		}
	})
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	return found, goFiles(dir, func(path string, file *ast.File) {
		add := func(e ast.Expr) {
			value, ok := text(e)
			if id, named := e.(*ast.Ident); named {
				value, ok = known[filepath.Dir(path)][id.Name]
			}
			if ok && value != "" {
				found[value] = path
			}
		}
		for name, value := range known[filepath.Dir(path)] {
			if rest, ok := strings.CutPrefix(name, "event"); ok && rest != "" && strings.ToUpper(rest[:1]) == rest[:1] && constants(file)[name].value == value {
				found[value] = path
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Eventf" || s.Sel.Name == "Event") && len(n.Args) > 3 {
					add(n.Args[3])
				}
			case *ast.KeyValueExpr:
				if id, ok := n.Key.(*ast.Ident); ok && (id.Name == "Begins" || id.Name == "Over") {
					add(n.Value)
				}
			}
			return true
		})
	})
}

// explainedEvents are the events with a line in docs/events.md.
func explainedEvents(root string) (map[string]bool, error) {
	raw, err := os.ReadFile(filepath.Join(root, "docs", "events.md"))
	explained := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		if cell, ok := strings.CutPrefix(line, "| `"); ok {
			for i, name := range strings.Split(strings.SplitN(cell, " |", 2)[0], "`") {
				if i%2 == 0 && name != "" {
					explained[name] = true
				}
			}
		}
	}
	return explained, err
}
