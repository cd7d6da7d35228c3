// Command goroutines says which tests run with the race detector: those of packages in which goroutines may meet. It prints shell variables that
// `make test` goes by, and reads nothing but the syntax of Go files.
//
//	meeting   packages that start goroutines, have channels or locks, or whose tests do; those with the most tests first
//	others    packages with tests in which one goroutine works
//	suites    packages with tests that work in one goroutine although others of their package don't, and cost much
//	alone     a pattern of the names of those tests
//
// See docs/decisions/0075-the-race-detector-where-goroutines-meet.md.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// alone matches the names of tests that run without the race detector in packages where goroutines meet: those that compute, and suites that play the
// same passes of a reconciler a hundred times, with a fault at each write, which other tests play undisturbed and with the detector.
const alone = `^Test(FieldsOf|ForecastIsTrue|Model|Rendered|Simulation|[A-Za-z]*Crash)`

var isAlone = regexp.MustCompile(alone)

// tops are folders with packages of the main module. testsElsewhere are run by targets of their own.
var (
	tops           = []string{"cmd", "config", "hack", "internal", "test"}
	testsElsewhere = []string{"test/e2e"}
)

// meets are how goroutines meet by way of packages, and by way of functions and methods, all by their names.
var (
	meetingPackages = []string{"sync", "sync/atomic", "golang.org/x/sync/errgroup", "golang.org/x/sync/singleflight", "net/http/httptest"}
	meetingCalls    = []string{"Parallel", "SetupWithManager", "ControllerManagedBy", "NewControllerManagedBy", "NewManager", "ListenAndServe", "ListenAndServeTLS"}
)

// pkg is a folder with Go files.
type pkg struct {
	dir     string
	files   []*ast.File
	tests   map[string]*ast.FuncDecl
	helpers map[string][]*ast.FuncDecl // functions and methods of test files, by name
	// server: tests start an API server. size is that of all test files, in bytes.
	server bool
	size   int64
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: goroutines REPOSITORY")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string) error {
	packages, err := load(root)
	if err != nil {
		return err
	}
	var meeting, others, suites []pkg
	for _, p := range packages {
		switch {
		case len(p.tests) == 0 || slices.Contains(testsElsewhere, p.dir):
			continue
		case p.meets():
			meeting = append(meeting, p)
		default:
			others = append(others, p)
			continue
		}
		for name := range p.tests {
			if isAlone.MatchString(name) {
				suites = append(suites, p)
				break
			}
		}
	}
	for _, v := range []struct {
		name string
		list []pkg
	}{{"meeting", meeting}, {"others", others}, {"suites", suites}} {
		fmt.Fprintf(out, "%s='%s'\n", v.name, strings.Join(ordered(v.list), " "))
	}
	_, err = fmt.Fprintf(out, "alone='%s'\n", alone)
	return err
}

// ordered are packages as go test takes them: what takes longest first, so that nothing long is left for the end, when one core is enough.
func ordered(list []pkg) []string {
	slices.SortFunc(list, func(a, b pkg) int {
		server := 0
		if a.server != b.server {
			server = 1
			if a.server {
				server = -1
			}
		}
		return cmp.Or(server, cmp.Compare(b.size, a.size), strings.Compare(a.dir, b.dir))
	})
	var out []string
	for _, p := range list {
		out = append(out, "./"+p.dir)
	}
	return out
}

// load reads all packages, sorted by their folders.
func load(root string) ([]pkg, error) {
	byDir := map[string]*pkg{}
	for _, top := range tops {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || module(path)):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go"):
				return nil
			}
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			dir = filepath.ToSlash(dir)
			if byDir[dir] == nil {
				byDir[dir] = &pkg{dir: dir, tests: map[string]*ast.FuncDecl{}, helpers: map[string][]*ast.FuncDecl{}}
			}
			return byDir[dir].add(path)
		})
		if err != nil {
			return nil, err
		}
	}
	out := make([]pkg, 0, len(byDir))
	for _, p := range byDir {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b pkg) int { return strings.Compare(a.dir, b.dir) })
	return out, nil
}

// module tells a folder that is a module of its own.
func module(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// add reads a file of the package. Files with a build tag of their own count for what the package does, but have no tests that `make test` runs here.
func (p *pkg) add(path string) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	p.files = append(p.files, f)
	if !strings.HasSuffix(path, "_test.go") {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	p.size += info.Size()
	p.server = p.server || calls(f, "testenv", "Start")
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		if name := fn.Name.Name; fn.Recv == nil && runs(f) && strings.HasPrefix(name, "Test") && name != "TestMain" {
			p.tests[name] = fn
		}
		p.helpers[fn.Name.Name] = append(p.helpers[fn.Name.Name], fn)
	}
	return nil
}

// runs tells a file that is compiled without tags.
func runs(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if c.Pos() < f.Package && strings.HasPrefix(c.Text, "//go:build ") && !strings.Contains(c.Text, "linux") && !strings.Contains(c.Text, "unix") {
				return false
			}
		}
	}
	return true
}

// calls tells a call of a function of a package, both by their names.
func calls(in ast.Node, of, name string) bool {
	found := false
	ast.Inspect(in, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == name {
			x, ok := sel.X.(*ast.Ident)
			found = found || ok && x.Name == of
		}
		return !found
	})
	return found
}

// meets tells whether goroutines may meet in a package or its tests.
func (p *pkg) meets() bool {
	for _, f := range p.files {
		for _, spec := range f.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil && slices.Contains(meetingPackages, path) && (path != "sync" || shares(f)) {
				return true
			}
		}
		if starts(f) || talks(f) {
			return true
		}
	}
	return false
}

// starts tells whether code starts goroutines, by itself or by a call that does.
func starts(in ast.Node) bool {
	found := false
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(meetingCalls, sel.Sel.Name) {
				found = true
			}
		}
		return !found
	})
	return found
}

// shares tells whether a file takes more of package sync than its Once family, by which a package computes something the first time it is needed.
func shares(f *ast.File) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && !strings.HasPrefix(sel.Sel.Name, "Once") {
			x, ok := sel.X.(*ast.Ident)
			found = found || ok && x.Name == "sync"
		}
		return !found
	})
	return found
}

// talks tells whether code has channels of its own or sends. Who only receives waits for the end of a context or for a timer.
func talks(in ast.Node) bool {
	found := false
	ast.Inspect(in, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.ChanType, *ast.SendStmt:
			found = true
		}
		return !found
	})
	return found
}

// reached are the functions of test files that a test may call, itself first. Names decide, so these are too many rather than too few.
func (p *pkg) reached(test *ast.FuncDecl) []*ast.FuncDecl {
	seen := map[string]bool{}
	list := []*ast.FuncDecl{test}
	for i := 0; i < len(list); i++ {
		ast.Inspect(list[i].Body, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if ok && !seen[id.Name] {
				seen[id.Name] = true
				for _, fn := range p.helpers[id.Name] {
					if fn != test {
						list = append(list, fn)
					}
				}
			}
			return true
		})
	}
	return list
}
