package floors

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// steps are the functions of a reconciler's pass, and the file that each is in. A reconciler that has no such function has no such step.
var steps = map[string]string{"observe": "observe.go", "planFor": "plan.go", "apply": "apply.go", "report": "report.go"}

// onePage is how many lines a package of a controller has at most that needs no files for its steps: who reads it reads all of it.
const onePage = 300

// sourcesOf are the Go files of a folder without tests, and their lines.
func sourcesOf(t *testing.T, dir string) (files map[string]*ast.File, lines int) {
	t.Helper()
	files = map[string]*ast.File{}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, data, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = f
		lines += strings.Count(string(data), "\n")
	}
	return files, lines
}

// reconcilers are the types whose Reconcile takes a request.
func reconcilers(files map[string]*ast.File) map[string]bool {
	found := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.Name != "Reconcile" || receiver(fn) == "" || len(fn.Type.Params.List) != 2 {
				continue
			}
			if arg, ok := fn.Type.Params.List[1].Type.(*ast.SelectorExpr); ok && arg.Sel.Name == "Request" {
				found[receiver(fn)] = true
			}
		}
	}
	return found
}

// receiver is the name of the type that a method is of, empty for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	expr := fn.Recv.List[0].Type
	if pointer, ok := expr.(*ast.StarExpr); ok {
		expr = pointer.X
	}
	if name, ok := expr.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// strays are the steps of a package with one reconciler that are in files of other names.
func strays(files map[string]*ast.File, of map[string]bool) []string {
	var found []string
	for name, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil && !of[receiver(fn)] || steps[fn.Name.Name] == "" || steps[fn.Name.Name] == name {
				continue
			}
			found = append(found, fmt.Sprintf("%s is in %s, and belongs into %s", fn.Name.Name, name, steps[fn.Name.Name]))
		}
	}
	return found
}

// Where several controllers share a package, each has a file, and its steps are there.
func TestSteps(t *testing.T) {
	seen := 0
	for pkg := range imports(t) {
		files, lines := sourcesOf(t, filepath.Join(root, pkg))
		of := reconcilers(files)
		if len(of) != 1 || lines <= onePage {
			continue
		}
		seen++
		t.Run(fmt.Sprintf("When somebody looks for a step of %s it should be in the file of its name", pkg), func(t *testing.T) {
			for _, stray := range strays(files, of) {
				t.Errorf("%s: %s", pkg, stray)
			}
		})
	}
	if seen < 15 {
		t.Errorf("found %d reconcilers only: is %s the repository?", seen, root)
	}
}
