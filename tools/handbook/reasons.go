package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
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
	others := map[string]string{}
	for line := range strings.Lines(meanings) {
		if name, meaning, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			others[name] = meaning
		}
	}
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
			meaning = strings.TrimPrefix(meaning, name+" ")
			all = append(all, Reason{Value: c.value, Meaning: sentence(meaning), Group: filepath.ToSlash(group)})
		}
	})
	slices.SortFunc(all, func(a, b Reason) int {
		return strings.Compare(a.Group+"\x00"+a.Value+"\x00"+a.Meaning, b.Group+"\x00"+b.Value+"\x00"+b.Meaning)
	})
	return all, errors.Join(append(errs, err)...)
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
