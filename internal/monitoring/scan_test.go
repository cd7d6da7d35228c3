package monitoring

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// found is a metric as the code declares it.
type found struct {
	name, help, kind string
	labels           []string
	folder           string
}

// prefixes of names that a helper of a package completes.
var prefixes = map[string]string{"internal/packages/control/metrics": "package_operator_", "internal/capigroup/proxy": "hypershift_api_proxy_"}

// declared are the metrics in the code of our programs, sorted by name.
func declared(t *testing.T) []found {
	t.Helper()
	root := filepath.Join("..", "..")
	folders := map[string][]*ast.File{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "testdata" {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test"+string(filepath.Separator)) {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		folders[filepath.ToSlash(folder)] = append(folders[filepath.ToSlash(folder)], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []found
	for folder, files := range folders {
		p := pkg{folder: folder, files: files, values: map[string]ast.Expr{}, kinds: map[string]string{}}
		p.read()
		all = append(all, p.metrics...)
	}
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b found) bool { return a.name == b.name })
}

// pkg reads one package.
type pkg struct {
	folder string
	files  []*ast.File
	// values are those of the package's variables, and kinds those with which a description is told, by its name.
	values  map[string]ast.Expr
	kinds   map[string]string
	metrics []found
}

func (p *pkg) read() {
	for _, f := range p.files {
		for _, decl := range f.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
					for i, name := range v.Names {
						p.values[name.Name] = v.Values[i]
					}
				}
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && called(call) == "MustNewConstMetric" && len(call.Args) > 1 && last(call.Args[1]) == "CounterValue" {
				p.kinds[last(call.Args[0])] = "counter"
			}
			return true
		})
	}
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			p.node(n)
			return true
		})
	}
}

func (p *pkg) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		p.call(n)
	case *ast.ValueSpec: // var x = prometheus.NewDesc(…)
		for i, v := range n.Values {
			p.kind(n.Names[i].Name, v)
		}
	case *ast.KeyValueExpr: // x: prometheus.NewDesc(…)
		p.kind(last(n.Key), n.Value)
	}
}

// kind corrects the kind of the metric that an expression declares, by the variable that it is in.
func (p *pkg) kind(variable string, value ast.Expr) {
	call, ok := value.(*ast.CallExpr)
	if !ok || called(call) != "NewDesc" || p.kinds[variable] == "" {
		return
	}
	p.add(found{name: p.text(call.Args[0]), help: p.text(call.Args[1]), kind: p.kinds[variable], labels: p.list(call.Args[2])})
}

func (p *pkg) call(call *ast.CallExpr) {
	args := call.Args
	switch name := called(call); {
	case name == "NewDesc" && len(args) == 4:
		p.add(found{name: p.text(args[0]), help: p.text(args[1]), kind: "gauge", labels: p.list(args[2])})
	case name == "newMetric" && len(args) >= 2:
		p.add(found{name: p.text(args[0]), help: p.text(args[1]), kind: "gauge", labels: p.spread(args[2:])})
	case name == "gauge" && prefixes[p.folder] != "" && len(args) >= 2:
		p.add(found{name: p.text(args[0]), help: p.text(args[1]), kind: "gauge", labels: p.spread(args[2:])})
	case name == "counter" && p.folder == "internal/ignition" && len(args) == 2:
		p.add(found{name: p.text(args[0]), help: p.text(args[1]), kind: "counter"})
	case name == "head" && p.folder == "internal/capigroup/proxy" && len(args) == 3:
		p.add(found{name: p.text(args[0]), help: p.text(args[2]), kind: p.text(args[1]), labels: proxyLabels[p.text(args[0])]})
	case strings.HasPrefix(name, "New") && len(args) > 0:
		opts, ok := args[0].(*ast.CompositeLit)
		if !ok || !strings.HasSuffix(last(opts.Type), "Opts") {
			return
		}
		m := found{kind: strings.ToLower(strings.TrimSuffix(last(opts.Type), "Opts"))}
		for _, e := range opts.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch last(kv.Key) {
			case "Name":
				m.name = p.text(kv.Value)
			case "Help":
				m.help = p.text(kv.Value)
			case "ConstLabels":
				if lit, ok := kv.Value.(*ast.CompositeLit); ok {
					for _, e := range lit.Elts {
						m.labels = append(m.labels, p.text(e.(*ast.KeyValueExpr).Key))
					}
				}
			}
		}
		if strings.HasSuffix(name, "Vec") && len(args) > 1 {
			m.labels = p.list(args[1])
		}
		p.add(m)
	}
}

// proxyLabels are those of metrics that are printed without Prometheus' library.
var proxyLabels = map[string][]string{"requests_total": {"method", "resource", "code"}, "request_duration_seconds": {"method", "resource"}, "translation_errors_total": {"error_type"}}

func (p *pkg) add(m found) {
	if m.name == "" {
		return // made by a helper whose callers are read
	}
	if prefix := prefixes[p.folder]; prefix != "" && !strings.HasPrefix(m.name, prefix) {
		m.name = prefix + m.name
	}
	m.folder = p.folder
	for i := range p.metrics { // the kind of a description may be found after it
		if p.metrics[i].name == m.name {
			if m.kind == "counter" {
				p.metrics[i].kind = m.kind
			}
			return
		}
	}
	p.metrics = append(p.metrics, m)
}

func called(call *ast.CallExpr) string { return last(call.Fun) }

func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// text is the value of a string that is written out, perhaps in parts; empty for anything else.
func (p *pkg) text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		if err != nil {
			return ""
		}
		return s
	case *ast.BinaryExpr:
		x, y := p.text(e.X), p.text(e.Y)
		if x == "" || y == "" {
			return ""
		}
		return x + y
	case *ast.Ident:
		if v := p.values[e.Name]; v != nil {
			return p.text(v)
		}
	}
	return ""
}

// list is the value of a list of strings: written out, a variable of the package, or with(list, more…).
func (p *pkg) list(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return p.spread(e.Elts)
	case *ast.Ident:
		if v := p.values[e.Name]; v != nil {
			return p.list(v)
		}
	case *ast.CallExpr:
		if called(e) == "with" && len(e.Args) > 0 {
			return append(p.list(e.Args[0]), p.spread(e.Args[1:])...)
		}
	}
	return nil
}

func (p *pkg) spread(args []ast.Expr) (out []string) {
	for _, a := range args {
		if s := p.text(a); s != "" {
			out = append(out, s)
			continue
		}
		out = append(out, p.list(a)...)
	}
	return out
}
