package main

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is what import paths of our packages begin with.
const module = "hcp.internal/platform/"

// startingCalls are functions and methods that start goroutines, by their names, whatever they belong to: subtests side by side, managers and controllers,
// servers, groups of goroutines, timers. What is in separateCalls tests that run alone may have, too.
var (
	sharingCalls  = []string{"Parallel", "SetupWithManager", "ControllerManagedBy", "NewControllerManagedBy", "NewManager", "ListenAndServe", "ListenAndServeTLS"}
	separateCalls = []string{"NewServer", "NewTLSServer", "NewUnstartedServer", "Go", "AfterFunc"}
	startingCalls = slices.Concat(sharingCalls, separateCalls)
	// startingInTests: a test that serves something for itself and asks it has one goroutine that waits for the other.
	startingInTests = slices.DeleteFunc(slices.Clone(startingCalls), func(name string) bool { return strings.HasSuffix(name, "Server") })
)

// quiet are folders whose goroutines share nothing with those who call them, and are watched where they are tested: they start the processes of an API
// server and wait for their ends, and serve a library's image registry.
var quiet = []string{"internal/testenv", "internal/release/releasetest", "internal/packages/packagestest.NewRegistry"}

// declaration is a function, a method or variables of a package.
type declaration struct {
	name string
	node ast.Node
	// of is the folder. test: it stands in a test file, which nothing but tests of the same folder can call.
	of   string
	test bool
	// imports are folders of our packages by the names that the file has for them; all are names of all packages that it imports.
	imports map[string]string
	all     []string
	// how tells how it starts goroutines: "go", the name of a call, or that of a declaration that it reaches. It is empty when it doesn't.
	how string
	// callers are declarations that mention it.
	callers []*declaration
}

// starts tells whether running it may start goroutines.
func (d *declaration) starts() bool { return d.how != "" }

// declare notes what a file declares.
func (p *pkg) declare(f *ast.File, test bool) {
	imports, all := imported(f)
	for _, decl := range f.Decls {
		names := []string{}
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			names = append(names, decl.Name.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if values, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range values.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
		by := startingCalls
		if test {
			by = startingInTests
		}
		for _, name := range names {
			d := &declaration{name: name, node: decl, of: p.dir, test: test, imports: imports, all: all, how: startsItself(decl, by)}
			p.declarations[name] = append(p.declarations[name], d)
			if fn, ok := decl.(*ast.FuncDecl); ok && test && fn.Recv == nil && fn.Body != nil && runs(f) && isTest(name) {
				p.tests[name] = d
			}
		}
	}
}

// isTest tells a name of what `go test` runs: examples and the seeds of fuzz targets, too.
func isTest(name string) bool {
	return name != "TestMain" && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example"))
}

// imported are packages that a file imports, by its names for them.
func imported(f *ast.File) (ours map[string]string, all []string) {
	ours = map[string]string{}
	for _, spec := range f.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(full)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		all = append(all, name)
		if dir, ok := strings.CutPrefix(full, module); ok {
			ours[name] = dir
		}
	}
	return ours, all
}

// startsItself tells how code starts goroutines without calling other code of ours: by a statement, or by a call of these names.
func startsItself(in ast.Node, by []string) string {
	how := ""
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			how = "go"
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(by, sel.Sel.Name) {
				how = sel.Sel.Name
			}
		}
		return how == ""
	})
	return how
}

// follow tells every declaration that reaches one which starts goroutines. Names decide, within a folder and where one names another package, so these are
// rather too many. What is called by way of an interface or a value of another package is not seen.
func follow(packages map[string]*pkg) {
	var starting []*declaration
	for _, p := range packages {
		for _, list := range p.declarations {
			for _, d := range list {
				for _, called := range mentioned(d, packages) {
					called.callers = append(called.callers, d)
				}
				if d.starts() {
					starting = append(starting, d)
				}
			}
		}
	}
	for len(starting) > 0 {
		d := starting[0]
		starting = starting[1:]
		for _, caller := range d.callers {
			if !caller.starts() && (caller.of == d.of || !isQuiet(d)) {
				caller.how = d.name
				starting = append(starting, caller)
			}
		}
	}
}

func isQuiet(d *declaration) bool {
	return slices.Contains(quiet, d.of) || slices.Contains(quiet, d.of+"."+d.name)
}

// mentioned are the declarations whose names occur in one.
func mentioned(d *declaration, packages map[string]*pkg) []*declaration {
	var out []*declaration
	seen := map[string]bool{}
	mention := func(dir, name string) {
		p := packages[dir]
		if p == nil || seen[dir+"."+name] {
			return
		}
		seen[dir+"."+name] = true
		for _, other := range p.declarations[name] {
			// A test calls no other test, and programs call none.
			if other != d && (!other.test || d.test && dir == d.of && !isTest(name)) {
				out = append(out, other)
			}
		}
	}
	ast.Inspect(d.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			if dir, ours := d.imports[x.Name]; ours {
				mention(dir, n.Sel.Name)
				return false
			}
			// Subtests run one after the other unless they say otherwise.
			return !slices.Contains(d.all, x.Name) && (x.Name != "t" || n.Sel.Name != "Run")
		case *ast.Ident:
			mention(d.of, n.Name)
		}
		return true
	})
	return out
}

// reachedInTests are a test and what it mentions of the test files beside it, directly or by others.
func (p *pkg) reachedInTests(test *declaration) []*declaration {
	list := []*declaration{test}
	for i := 0; i < len(list); i++ {
		for _, d := range mentioned(list[i], map[string]*pkg{p.dir: p}) {
			if d.test && !slices.Contains(list, d) {
				list = append(list, d)
			}
		}
	}
	return list
}
