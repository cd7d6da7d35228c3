package floors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// How a controller is made with controller-runtime's builder. Nobody of ours makes one without it.
var (
	begins = map[string]bool{"NewControllerManagedBy": true, "ControllerManagedBy": true}
	ends   = map[string]bool{"Complete": true, "Build": true}
)

// controllers are those that a file makes: how many there are, and the arguments that take their reconcilers.
func controllers(f *ast.File) (count int, reconcilers []ast.Expr) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fun, ok := call.Fun.(*ast.SelectorExpr)
		switch {
		case !ok:
		case begins[fun.Sel.Name]:
			count++
		case ends[fun.Sel.Name] && len(call.Args) == 1:
			reconcilers = append(reconcilers, call.Args[0])
		}
		return true
	})
	return count, reconcilers
}

// calls tells whether an expression or a file has a call of a function of a package or of a field, both by their names.
func calls(in ast.Node, of, name string) bool {
	found := false
	ast.Inspect(in, func(n ast.Node) bool {
		fun, ok := n.(*ast.SelectorExpr)
		if !ok || fun.Sel.Name != name {
			return !found
		}
		switch x := fun.X.(type) {
		case *ast.Ident:
			found = found || x.Name == of
		case *ast.SelectorExpr:
			found = found || x.Sel.Name == of
		}
		return !found
	})
	return found
}

// files are ours that aren't tests, by their folder.
func files(t *testing.T) map[string][]*ast.File {
	t.Helper()
	found := map[string][]*ast.File{}
	for _, top := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			found[filepath.Dir(path)] = append(found[filepath.Dir(path)], f)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// When a controller is added, a race that it loses should be no failure: its reconciler goes through outcome.Wrap, or its passes are done by Outcomes.Pass,
// or end with Outcomes.Of where they need to know of it.
func TestControllers(t *testing.T) {
	seen := 0
	for folder, list := range files(t) {
		ofItsOwn := false
		for _, f := range list {
			ofItsOwn = ofItsOwn || calls(f, "outcomes", "Of") || calls(f, "outcomes", "Pass")
		}
		for _, f := range list {
			count, reconcilers := controllers(f)
			if count == 0 {
				continue
			}
			seen += count
			if len(reconcilers) < count {
				t.Errorf("%s begins %d controllers, and completes %d: complete each in the file that begins it, or teach this test", folder, count, len(reconcilers))
			}
			for _, r := range reconcilers {
				if !ofItsOwn && !calls(r, "outcome", "Wrap") {
					t.Errorf("%s completes a controller without kube/outcome: wrap its reconciler with outcome.Wrap", folder)
				}
			}
		}
	}
	if seen < 25 {
		t.Errorf("found %d controllers only: does the walk see them?", seen)
	}
}

// ownRetries are the folders that try again by themselves after a conflict, with their reasons.
var ownRetries = map[string]string{
	"internal/cli/install":    "a command has no next pass",
	"internal/cli/destroy":    "a command has no next pass",
	"internal/console/server": "a person waits for the answer, and nobody asks again for them",
	"internal/ignition":       "what it reports took minutes to make, and would be made again in the next pass",
}

// When a write may lose a race, the next pass should be what tries again: kube/outcome knows when. A loop of one's own makes a second rule of it.
func TestRetries(t *testing.T) {
	for folder, list := range files(t) {
		reason := ownRetries[strings.TrimPrefix(filepath.ToSlash(folder), root+"/")]
		for _, f := range list {
			if reason == "" && (calls(f, "retry", "RetryOnConflict") || calls(f, "retry", "OnError")) {
				t.Errorf("%s tries again by itself after a conflict: return the error, and let kube/outcome decide", folder)
			}
		}
	}
}

// When this test looks at a controller, it should see whether it is wrapped, however it is written.
func TestControllersAreSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		body           string
		count          int
		wrapped, bares int
	}{
		"When it is one chain it should be seen":     {"ctrl.NewControllerManagedBy(m).For(x).Complete(outcome.Wrap(r))", 1, 1, 0},
		"When it is in two parts it should be seen":  {"b := builder.ControllerManagedBy(m)\nreturn b.Complete(outcome.Wrap(&T{A: a}))", 1, 1, 0},
		"When it is built it should be seen":         {"c, err := builder.ControllerManagedBy(m).Build(r)", 1, 0, 1},
		"When it is wrapped twice it should be seen": {"ctrl.NewControllerManagedBy(m).Complete(ready.watch(outcome.Wrap(r)))", 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\nfunc _() {\n"+tc.body+"\n}\n", parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			count, reconcilers := controllers(f)
			wrapped := 0
			for _, r := range reconcilers {
				if calls(r, "outcome", "Wrap") {
					wrapped++
				}
			}
			if count != tc.count || wrapped != tc.wrapped || len(reconcilers)-wrapped != tc.bares {
				t.Errorf("got %d controllers, %d wrapped, %d bare", count, wrapped, len(reconcilers)-wrapped)
			}
		})
	}
}
