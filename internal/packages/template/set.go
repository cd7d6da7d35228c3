package template

import (
	"context"
	"errors"
	"fmt"
	"text/template"
)

// Set is a set of templates that can use each other's definitions. It is used by one goroutine at a time, and only for one rendering.
type Set struct {
	//nolint:containedctx // the functions of templates have no other way to hear of it
	ctx     context.Context
	root    *template.Template
	depth   int
	written int
}

// maxSetOutput bounds what all templates of a set may give together.
const maxSetOutput = 16 << 20

var errSetOutput = fmt.Errorf("templates give more than %d MiB", maxSetOutput>>20)

// NewSet returns a set that ends with ctx. extra are functions beside those of Functions.
func NewSet(ctx context.Context, extra template.FuncMap) *Set {
	s := &Set{ctx: ctx}
	b := &budget{}
	functions := Functions()
	for name, f := range extra {
		functions[name] = f
	}
	s.root = template.New("").Option("missingkey=error").Funcs(b.guard(functions)).Funcs(template.FuncMap{
		"include": s.include,
		tick:      func() (string, error) { return "", context.Cause(ctx) },
		printable: b.printable,
	})
	return s
}

// Parse adds a template.
func (s *Set) Parse(name, text string) error {
	_, err := s.root.New(name).Parse(text)
	return err
}

// Seal makes the set ready for Execute; nothing can be added after it.
func (s *Set) Seal() error {
	for _, each := range s.root.Templates() {
		if each.Tree == nil {
			continue
		}
		if err := addPrintable(each.Root); err != nil {
			return err
		}
		if err := addTicks(each.Root); err != nil {
			return err
		}
	}
	return nil
}

// Execute renders a template.
func (s *Set) Execute(name string, data any) ([]byte, error) {
	out := &limited{ctx: s.ctx}
	if err := s.root.ExecuteTemplate(out, name, data); err != nil {
		return nil, err
	}
	if s.written += out.Len(); s.written > maxSetOutput {
		return nil, errSetOutput
	}
	return out.Bytes(), nil
}

func (s *Set) include(name string, data any) (string, error) {
	if s.depth++; s.depth > maxInclude {
		return "", errDepth
	}
	defer func() { s.depth-- }()
	out := &limited{ctx: s.ctx}
	err := s.root.ExecuteTemplate(out, name, data)
	for _, known := range []error{errDepth, errOutput, errTime} {
		if errors.Is(err, known) {
			return "", known // once; every level of it would say the same
		}
	}
	if s.written += out.Len(); s.written > maxSetOutput {
		return "", errSetOutput
	}
	return out.String(), err
}
