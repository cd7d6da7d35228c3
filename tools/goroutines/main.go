// Command goroutines says which tests run with the race detector: those that may start goroutines, and in packages without an API server, where it costs little,
// all others beside them. It prints shell variables that `make test` goes by, and reads nothing but the syntax of Go files.
//
//	meeting   packages with a test that reaches code which starts goroutines; those with the most tests first
//	others    packages without such a test whose tests wait for something or start it, and those that the list below takes out of meeting
//	computing packages without such a test whose tests only compute, and may take as long as they like
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
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// alone matches the names of tests that run without the race detector in packages where goroutines meet: those that compute, as
// properties do, those that install, as the CLI does in one goroutine, those of single passes that could start goroutines and have nothing to reach, and suites
// that play the same passes of a reconciler a hundred times, with a fault at each write, which other tests play undisturbed and with the detector.
const alone = `^Test(FieldsOf|ForecastIsTrue|Model|Rendered|Simulation|Install(AndAgain|BesideOldClusters|StrandsNobody)|[A-Za-z]*(Crash|DiesAlways|Passes|Properties))`

var isAlone = regexp.MustCompile(alone)

// tops are folders with packages of the main module. testsElsewhere are run by targets of their own.
var (
	tops           = []string{"cmd", "config", "hack", "internal", "test"}
	testsElsewhere = []string{"test/e2e"}
)

// withoutDetector are packages by why they are tested without it. Most link a cloud's whole library: to compile that with the detector takes longer than all
// their tests.
var withoutDetector = map[string]string{
	"cmd/hcp-cloud":                 "trees of commands are made, and none is run",
	"cmd/hypershift":                "a command works in one goroutine; subtests side by side start programs",
	"internal/cli/clitest":          "a command works in one goroutine; subtests side by side have one each",
	"internal/cli/destroy":          "a command works in one goroutine, and its test reads what it prints",
	"internal/local/cli":            "a command works in one goroutine, and its test reads what it prints",
	"internal/platform/azure/cloud": "one controller works in a manager, as others do in packages with the detector",

	// These take longest with the detector, for their tests rather than for what they link. make test sets what turns client-go's detector on.
	"internal/etcdrecovery":            inOneGoroutine,
	"internal/hostedcluster":           inOneGoroutine,
	"internal/hostedcluster/migration": inOneGoroutine,
	"internal/hostedcontrolplane":      inOneGoroutine,
	"internal/nodepool":                inOneGoroutine,
}

const inOneGoroutine = "an object is reconciled in one goroutine; what reconcilers share is the cache, where client-go's detector of changes looks"

// pkg is a folder with Go files.
type pkg struct {
	dir          string
	tests        map[string]*declaration
	declarations map[string][]*declaration
	// server: tests start an API server. waits: they start or ask something, or look at the clock. size is that of all test files, in bytes.
	server, waits bool
	size          int64
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
	var meeting, others, computing []pkg
	for _, p := range packages {
		switch {
		case len(p.tests) == 0 || slices.Contains(testsElsewhere, p.dir):
			continue
		case p.meets() && withoutDetector[p.dir] == "":
			meeting = append(meeting, p)
		case p.meets() || p.waits:
			others = append(others, p)
		default:
			computing = append(computing, p)
		}
	}
	calm := calmTests(meeting)
	suites := slices.DeleteFunc(slices.Clone(meeting), func(p pkg) bool {
		for name := range p.tests {
			if isAlone.MatchString(name) || slices.Contains(calm, name) {
				return false
			}
		}
		return true
	})
	for _, v := range []struct {
		name string
		list []pkg
	}{{"meeting", meeting}, {"others", others}, {"computing", computing}, {"suites", suites}} {
		fmt.Fprintf(out, "%s='%s'\n", v.name, strings.Join(ordered(v.list), " "))
	}
	_, err = fmt.Fprintf(out, "alone='%s|^(%s)$'\n", alone, strings.Join(calm, "|"))
	return err
}

// calmTests are the names of tests of packages with an API server that start no goroutines. `go test` knows one pattern for all packages, so that a name counts
// for none if it is that of another test somewhere that has to run with the detector.
func calmTests(meeting []pkg) []string {
	calm := map[string]bool{}
	for _, p := range meeting {
		for name, test := range p.tests {
			is, known := calm[name]
			calm[name] = p.server && !test.starts() && (is || !known)
		}
	}
	maps.DeleteFunc(calm, func(name string, is bool) bool { return !is || isAlone.MatchString(name) })
	return slices.Sorted(maps.Keys(calm))
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
			case d.IsDir() && (d.Name() == "testdata" || isModule(path)):
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
				byDir[dir] = &pkg{dir: dir, tests: map[string]*declaration{}, declarations: map[string][]*declaration{}}
			}
			return byDir[dir].add(path)
		})
		if err != nil {
			return nil, err
		}
	}
	follow(byDir)
	out := make([]pkg, 0, len(byDir))
	for _, p := range byDir {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b pkg) int { return strings.Compare(a.dir, b.dir) })
	return out, nil
}

// isModule tells a folder that is a module of its own.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// add reads a file of the package. Files with a build tag of their own have no tests that `make test` runs here.
func (p *pkg) add(path string) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(path, "_test.go")
	p.declare(f, test)
	if !test {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	p.size += info.Size()
	p.server = p.server || calls(f, "testenv", "Start")
	p.waits = p.waits || waits(f)
	return nil
}

// waits tells a file of tests that start something or ask it, by what it imports, or that look at the clock, by what it calls.
func waits(f *ast.File) bool {
	for _, spec := range f.Imports {
		if slices.Contains([]string{`"net"`, `"net/http/httptest"`, `"os/exec"`, `"` + module + `internal/testenv"`}, spec.Path.Value) {
			return true
		}
	}
	for _, name := range []string{"After", "NewTicker", "NewTimer", "Since", "Sleep", "Tick"} {
		if calls(f, "time", name) {
			return true
		}
	}
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && slices.Contains([]string{"Consistently", "Eventually", "WithDeadline", "WithTimeout"}, id.Name)
		return !found
	})
	return found
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

// meets tells whether a test of the package may start goroutines, of those that don't run alone in any case.
func (p *pkg) meets() bool {
	for name, test := range p.tests {
		if test.starts() && !isAlone.MatchString(name) {
			return true
		}
	}
	return false
}
