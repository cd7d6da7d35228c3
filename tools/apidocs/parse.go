package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// pkg is a package of API types.
type pkg struct {
	path    string // below the module, with slashes
	group   string // of the API; empty when there is none
	doc     string
	imports map[string]string // name to the path below the module, of packages of the same module
	types   map[string]*typ
}

// typ is an exported type.
type typ struct {
	pkg    *pkg
	name   string
	is     string // the type's definition when it is no struct
	kind   bool   // served by API servers
	doc    comment
	fields []field
}

// field is a member of a struct. An inlined one has no name.
type field struct {
	name string
	expr string // as in Go
	refs []ref
	doc  comment
}

// ref names a type: in the same package when from is empty.
type ref struct{ from, name string }

// comment is a doc comment, taken apart.
type comment struct {
	text    string
	markers []string // without the leading "+"
}

func parse(folder, path string) (*pkg, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &pkg{path: filepath.ToSlash(path), imports: map[string]string{}, types: map[string]*typ{}}
	fset := token.NewFileSet()
	for _, name := range names {
		base := filepath.Base(name)
		if strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "zz_generated.") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.file(file)
	}
	if len(p.types) == 0 {
		return nil, nil
	}
	return p, nil
}

func (p *pkg) file(file *ast.File) {
	if file.Doc != nil {
		p.doc = split(file.Doc).text
		for _, m := range split(file.Doc).markers {
			if group, ok := strings.CutPrefix(m, "groupName="); ok {
				p.group = group
			}
		}
	}
	for _, imp := range file.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if below, ok := strings.CutPrefix(path, "hcp.internal/api/"); ok && err == nil && imp.Name != nil {
			p.imports[imp.Name.Name] = below
		}
	}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			s := spec.(*ast.TypeSpec)
			doc := s.Doc
			if doc == nil {
				doc = gen.Doc
			}
			if s.Name.IsExported() && !strings.HasSuffix(s.Name.Name, "List") {
				p.types[s.Name.Name] = p.typ(s, doc)
			}
		}
	}
}

func (p *pkg) typ(s *ast.TypeSpec, doc *ast.CommentGroup) *typ {
	t := &typ{pkg: p, name: s.Name.Name, doc: split(doc)}
	t.kind = slices.Contains(t.doc.markers, "kubebuilder:object:root=true")
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		t.is = text(s.Type)
		return t
	}
	for _, f := range st.Fields.List {
		tag := ""
		if f.Tag != nil {
			raw, err := strconv.Unquote(f.Tag.Value)
			if err == nil {
				tag = reflect.StructTag(raw).Get("json")
			}
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "-" || (name == "" && !strings.Contains(options, "inline")) {
			continue
		}
		t.fields = append(t.fields, field{name: name, expr: text(f.Type), refs: refs(f.Type), doc: split(f.Doc)})
	}
	return t
}

// split takes a doc comment apart.
func split(group *ast.CommentGroup) comment {
	var c comment
	if group == nil {
		return c
	}
	var lines []string
	for _, line := range group.List {
		l := strings.TrimPrefix(strings.TrimPrefix(line.Text, "//"), " ")
		if marker, ok := strings.CutPrefix(strings.TrimSpace(l), "+"); ok {
			c.markers = append(c.markers, marker)
			continue
		}
		lines = append(lines, l)
	}
	c.text = strings.TrimSpace(strings.Join(lines, "\n"))
	return c
}

// text writes a type as Go does.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return text(e.X)
	case *ast.SelectorExpr:
		return text(e.X) + "." + e.Sel.Name
	case *ast.ArrayType:
		return "[]" + text(e.Elt)
	case *ast.MapType:
		return "map[" + text(e.Key) + "]" + text(e.Value)
	}
	return "any"
}

func refs(e ast.Expr) []ref {
	switch e := e.(type) {
	case *ast.Ident:
		return []ref{{name: e.Name}}
	case *ast.StarExpr:
		return refs(e.X)
	case *ast.SelectorExpr:
		return []ref{{from: text(e.X), name: e.Sel.Name}}
	case *ast.ArrayType:
		return refs(e.Elt)
	case *ast.MapType:
		return append(refs(e.Key), refs(e.Value)...)
	}
	return nil
}
