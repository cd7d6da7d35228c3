package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// meanings are of constants without a comment.
//
//go:embed meanings.tsv
var meanings string

// Reason is one that a condition may have.
type Reason struct {
	Value   string
	Meaning string // of the constant's comment
	Group   string // folder of the API, as "hypershift/v1beta1"
}

// Reasons are the constants of an API module whose names contain Reason, sorted by group and value. One without a comment is an error.
func Reasons(module string) ([]Reason, error) {
	var all []Reason
	var errs []error
	others := otherMeanings()
	err := goFiles(module, func(path string, file *ast.File) {
		group, err := filepath.Rel(module, filepath.Dir(path))
		errs = append(errs, err)
		for name, c := range constants(file) {
			if !strings.Contains(name, "Reason") {
				continue
			}
			meaning := strings.Join(strings.Fields(c.comment), " ")
			if meaning == "" {
				meaning = others[name]
			}
			if meaning == "" {
				errs = append(errs, fmt.Errorf("%s: constant %s has no comment that says what reason %q means", path, name, c.value))
			}
			meaning = strings.TrimLeft(strings.TrimPrefix(meaning, name), " :")
			all = append(all, Reason{Value: c.value, Meaning: sentence(meaning), Group: filepath.ToSlash(group)})
		}
	})
	slices.SortFunc(all, func(a, b Reason) int {
		return strings.Compare(a.Group+"\x00"+a.Value+"\x00"+a.Meaning, b.Group+"\x00"+b.Value+"\x00"+b.Meaning)
	})
	return all, errors.Join(append(errs, err)...)
}

// own is the group of reasons that no API has as a constant.
const own = "Of the operators alone"

var camel = regexp.MustCompile(`^[A-Z][A-Za-z]{3,}$`)

// OwnReasons are the reasons in the code below a folder that are not known, by value, from an API or as events: constants whose names say that they are
// reasons, and texts that are given for one. One that neither its comment nor meanings.tsv explains is an error.
func OwnReasons(dir string, known map[string]bool) ([]Reason, error) {
	found := map[string]Reason{}
	var errs []error
	others := otherMeanings()
	add := func(path, name, value, comment string) {
		if known[value] || !camel.MatchString(value) || found[value].Meaning != "" {
			return
		}
		meaning := strings.Join(strings.Fields(cmp.Or(others[value], comment)), " ")
		if meaning == "" {
			errs = append(errs, fmt.Errorf("%s: reason %q has neither a constant whose comment says what it means nor a line in meanings.tsv", path, value))
		}
		meaning = strings.TrimLeft(strings.TrimPrefix(meaning, name), " :")
		found[value] = Reason{Value: value, Meaning: sentence(meaning), Group: own}
	}
	err := goFiles(dir, func(path string, file *ast.File) {
		if strings.HasSuffix(filepath.Dir(path), "test") {
			return // a world for tests
		}
		for name, c := range constants(file) {
			if strings.Contains(strings.ToLower(name), "reason") {
				add(path, name, c.value, c.comment)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, e := range givenReasons(n) {
				if value, ok := text(e); ok {
					add(path, value, value, "")
				}
			}
			return true
		})
	})
	list := slices.SortedFunc(maps.Values(found), func(a, b Reason) int { return strings.Compare(a.Value, b.Value) })
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return list, errors.Join(append(errs, err)...)
}

// givenReasons are the expressions of a node that become the reason of a condition.
func givenReasons(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr: // of kube/conditions
		s, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return nil
		}
		if x, ok := s.X.(*ast.Ident); !ok || x.Name != "conditions" {
			return nil
		}
		at, ok := map[string]int{"True": 1, "False": 1, "Unknown": 1, "New": 2}[s.Sel.Name]
		if ok && len(n.Args) > at {
			return n.Args[at : at+1]
		}
	case *ast.KeyValueExpr:
		if id, ok := n.Key.(*ast.Ident); ok && id.Name == "Reason" {
			return []ast.Expr{n.Value}
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if id, ok := left.(*ast.Ident); ok && id.Name == "reason" && len(n.Rhs) == len(n.Lhs) {
				return n.Rhs[i : i+1]
			}
		}
	}
	return nil
}

// otherMeanings are those of meanings.tsv, by constant or value.
func otherMeanings() map[string]string {
	others := map[string]string{}
	for line := range strings.Lines(meanings) {
		if name, meaning, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			others[name] = meaning
		}
	}
	return others
}

// sentence takes away "means that", as comments begin.
func sentence(text string) string {
	for _, begin := range []string{"means that ", "says that ", "means: ", "is the reason when "} {
		text = strings.TrimPrefix(text, begin)
	}
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Page is the text of the page.
func Page(reasons []Reason) []byte {
	var b bytes.Buffer
	b.WriteString("# Reasons of conditions\n\nWritten by `make generate` from the comments of the constants. What a type of condition means and what to do is in " +
		"[conditions.md](../conditions.md); one cause for all of them is what `hypershift why` looks for ([why.md](../why.md)).\n")
	group := ""
	for _, r := range reasons {
		if r.Group != group {
			group = r.Group
			fmt.Fprintf(&b, "\n## %s\n\n| reason | when |\n|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.Value, strings.ReplaceAll(r.Meaning, "|", `\|`))
	}
	return b.Bytes()
}

type constant struct{ value, comment string }

// constants are those of a file that are strings.
func constants(file *ast.File) map[string]constant {
	found := map[string]constant{}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, s := range gen.Specs {
			spec := s.(*ast.ValueSpec) // of a const
			for i, name := range spec.Names {
				if i >= len(spec.Values) {
					continue
				}
				if value, ok := text(spec.Values[i]); ok {
					comment := spec.Doc.Text()
					if comment == "" && len(gen.Specs) == 1 {
						comment = gen.Doc.Text()
					}
					if comment == "" {
						comment = spec.Comment.Text()
					}
					found[name.Name] = constant{value, comment}
				}
			}
		}
	}
	return found
}

func text(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}

// goFiles calls visit for each file of Go below a folder, but tests and what is generated.
func goFiles(dir string, visit func(path string, file *ast.File)) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(e.Name(), "zz_generated") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err == nil {
			visit(path, file)
		}
		return err
	})
}
