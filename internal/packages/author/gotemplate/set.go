package gotemplate

import (
	"context"
	"fmt"
	"text/template"
)

// Set is a set of templates that can use each other's definitions. It is used by one goroutine at a time, and only for one rendering.
//
// There is no other way to render: its limits hold for all templates, those of packages and of ObjectTemplates.
type Set struct {
	// the functions of templates have no other way to hear of it
	ctx     context.Context
	root    *template.Template
	budget  *budget
	depth   int
	nested  int
	deep    map[string]int
	written int
}

// NewSet returns a set that ends with ctx. extra are functions beside those that all templates have.
func NewSet(ctx context.Context, extra template.FuncMap) *Set {
	s := &Set{ctx: ctx, budget: &budget{ctx: ctx}, deep: map[string]int{}}
	all := functions(ctx)
	for name, f := range extra {
		all[name] = f
	}
	s.root = template.New("").Option("missingkey=error").Funcs(s.budget.guard(all)).Funcs(template.FuncMap{
		"include": s.include,
		tick:      func() (string, error) { return "", context.Cause(ctx) },
		printable: s.budget.printable,
	})
	return s
}

// Parse adds a template.
func (s *Set) Parse(name, text string) (err error) {
	defer recovered(&err)
	if len(text) > maxTemplate {
		return errTemplate
	}
	if tooNested(text) {
		return errBlocks
	}
	t := s.root
	if name != "" { // the root itself is the template without a name
		t = s.root.New(name)
	}
	_, err = t.Parse(text)
	return Short(err)
}

// Seal makes the set ready for Execute; nothing can be added after it.
func (s *Set) Seal() (err error) {
	defer recovered(&err)
	for _, each := range s.root.Templates() {
		if each.Tree == nil {
			continue
		}
		depth := nesting(each.Root, 0)
		if depth > maxBlocks {
			return errBlocks
		}
		s.deep[each.Name()] = 1 + depth
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
func (s *Set) Execute(name string, data any) (_ []byte, err error) {
	defer recovered(&err)
	out := &limited{ctx: s.ctx}
	if err := s.root.ExecuteTemplate(out, name, data); err != nil {
		return nil, Short(err)
	}
	if s.written += out.Len(); s.written > maxSetOutput {
		return nil, errSetOutput
	}
	return out.Bytes(), nil
}

func (s *Set) include(name string, data any) (string, error) {
	s.depth++
	s.nested += s.deep[name]
	defer func() {
		s.depth--
		s.nested -= s.deep[name]
	}()
	if s.depth > maxInclude || s.nested > maxNested {
		return "", errDepth
	}
	out := &limited{ctx: s.ctx}
	if err := s.root.ExecuteTemplate(out, name, data); err != nil {
		return "", Short(err)
	}
	if s.written += out.Len(); s.written > maxSetOutput {
		return "", errSetOutput
	}
	return out.String(), nil
}

// recovered makes an error of a panic, of which there is none that we know.
func recovered(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%w: %.1000v", errPanic, cause)
	}
}
