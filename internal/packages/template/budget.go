package template

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"
)

// Bounds of the values that templates work with. Without them a few lines make a value of gigabytes, or one that contains itself, and what
// goes through it exhausts memory or stack.
const (
	// maxValue is the size of one value in bytes, with everything below it, once for each way to it.
	maxValue = 4 << 20
	// maxDepth is how deep values may nest.
	maxDepth = 100
	// maxProduced is the size of all texts that functions return in one rendering.
	maxProduced = 64 << 20
	// maxWidth is how wide printf may make one value.
	maxWidth = 1000
)

var (
	errValue    = fmt.Errorf("value larger than %d MiB", maxValue>>20)
	errNested   = fmt.Errorf("value nested deeper than %d levels", maxDepth)
	errProduced = fmt.Errorf("templates make texts of more than %d MiB together", maxProduced>>20)
	errWidth    = fmt.Errorf("printf: a width or precision above %d", maxWidth)
	errGrowth   = fmt.Errorf("result larger than %d MiB", maxValue>>20)
)

// budget counts what the functions of one rendering produce.
type budget struct{ produced int }

// unguarded only look at values, or hand them on.
var unguarded = map[string]bool{"hasKey": true, "get": true, "default": true, "empty": true, "ternary": true, "kindIs": true, "kindOf": true, "typeOf": true, "typeIs": true, "typeIsLike": true, "keys": true, "include": true}

// grows estimates the size of results that may be far larger than the arguments.
var grows = map[string]func(args []reflect.Value) int{
	"replace":  func(a []reflect.Value) int { return text(a, 2) + strings.Count(str(a, 2), str(a, 0))*text(a, 1) },
	"wrapWith": func(a []reflect.Value) int { return text(a, 2) * (1 + text(a, 1)) },
	"indent":   padded, "nindent": padded,
	"regexReplaceAll": expanded, "mustRegexReplaceAll": expanded,
	"regexReplaceAllLiteral": expanded, "mustRegexReplaceAllLiteral": expanded,
	"join": func(a []reflect.Value) int { return items(a, 1) * text(a, 0) },
}

func padded(a []reflect.Value) int {
	return text(a, 1) + (1+strings.Count(str(a, 1), "\n"))*int(a[0].Int())
}

// expanded: a replacement may hold the whole match several times.
func expanded(a []reflect.Value) int { return (text(a, 1) + 1) * (text(a, 2) + 1) }

func str(a []reflect.Value, i int) string {
	if i < len(a) && a[i].Kind() == reflect.String {
		return a[i].String()
	}
	return ""
}

func text(a []reflect.Value, i int) int { return len(str(a, i)) }

func items(a []reflect.Value, i int) int {
	if i >= len(a) {
		return 0
	}
	v := a[i]
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len()
	}
	return 0
}

// guard wraps functions so that their arguments and results stay within bounds.
func (b *budget) guard(functions template.FuncMap) template.FuncMap {
	out := template.FuncMap{}
	for name, f := range functions {
		out[name] = f
		if !unguarded[name] {
			out[name] = b.wrap(name, f)
		}
	}
	for name, f := range map[string]any{
		"print": fmt.Sprint, "println": fmt.Sprintln, "html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	} {
		out[name] = b.wrap(name, f)
	}
	out["printf"] = b.wrap("printf", printf)
	return out
}

var errorType = reflect.TypeFor[error]()

func (b *budget) wrap(name string, f any) any {
	fn := reflect.ValueOf(f)
	t := fn.Type()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	results := []reflect.Type{t.Out(0), errorType}
	call := fn.Call
	if t.IsVariadic() {
		call = fn.CallSlice
	}
	wrapped := func(args []reflect.Value) []reflect.Value {
		fail := func(err error) []reflect.Value {
			return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&err).Elem()}
		}
		left := maxValue
		for _, a := range args {
			if err := measure(a, &left, 0); err != nil {
				return fail(fmt.Errorf("%s: %w", name, err))
			}
		}
		if estimate := grows[name]; estimate != nil && estimate(args) > maxValue {
			return fail(fmt.Errorf("%s: %w", name, errGrowth))
		}
		out := call(args)
		if len(out) == 1 {
			out = append(out, reflect.Zero(errorType))
		}
		if err, failed := out[1].Interface().(error); failed {
			return fail(err)
		}
		left = maxValue
		if err := measure(out[0], &left, 0); err != nil {
			return fail(fmt.Errorf("%s: %w", name, err))
		}
		if b.produced += maxValue - left; b.produced > maxProduced && out[0].Kind() == reflect.String {
			return fail(errProduced)
		}
		return out
	}
	return reflect.MakeFunc(reflect.FuncOf(in, results, t.IsVariadic()), wrapped).Interface()
}

// measure takes the size of a value from what is left.
func measure(v reflect.Value, left *int, depth int) error {
	if depth > maxDepth {
		return errNested
	}
	const perValue = 16
	if *left -= perValue; *left < 0 {
		return errValue
	}
	switch v.Kind() {
	case reflect.String:
		*left -= v.Len()
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			return measure(v.Elem(), left, depth+1)
		}
	case reflect.Slice, reflect.Array:
		if kind := v.Type().Elem().Kind(); kind <= reflect.Complex128 { // numbers: nothing below
			*left -= v.Len() * 8
			break
		}
		for i := range v.Len() {
			if err := measure(v.Index(i), left, depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			if err := errors.Join(measure(iter.Key(), left, depth+1), measure(iter.Value(), left, depth+1)); err != nil {
				return err
			}
		}
	}
	if *left < 0 {
		return errValue
	}
	return nil
}

// wide finds widths of printf that are large, or come from an argument.
var wide = regexp.MustCompile(`%[-+# 0]*(\[\d+\])?(\*|\d{4,})|%[^a-zA-Z%]*\.(\[\d+\])?(\*|\d{4,})`)

func printf(format string, args ...any) (string, error) {
	if wide.MatchString(format) {
		return "", errWidth
	}
	return fmt.Sprintf(format, args...), nil
}

// printable is the function that looks at what a template prints, before it is turned into text.
const printable = "internalPrintable"

func (b *budget) printable(v reflect.Value) (reflect.Value, error) {
	left := maxValue
	if !v.IsValid() {
		return v, nil
	}
	return v, measure(v, &left, 0)
}

// addPrintable makes every action that prints look at the value first.
func addPrintable(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for i, node := range list.Nodes {
		var branches []*parse.ListNode
		switch n := node.(type) {
		case *parse.TemplateNode:
			action, err := asInclude(n)
			if err != nil {
				return err
			}
			list.Nodes[i] = action
		case *parse.ActionNode:
			if n.Pipe != nil && len(n.Pipe.Decl) == 0 {
				command, err := printableCommand()
				if err != nil {
					return err
				}
				n.Pipe.Cmds = append(n.Pipe.Cmds, command)
			}
		case *parse.RangeNode:
			branches = []*parse.ListNode{n.List, n.ElseList}
		case *parse.IfNode:
			branches = []*parse.ListNode{n.List, n.ElseList}
		case *parse.WithNode:
			branches = []*parse.ListNode{n.List, n.ElseList}
		}
		for _, branch := range branches {
			if err := addPrintable(branch); err != nil {
				return err
			}
		}
	}
	return nil
}

// asInclude is a {{template}} as an include, which has a limit of its depth that spares the stack.
func asInclude(n *parse.TemplateNode) (*parse.ActionNode, error) {
	t, err := template.New("").Funcs(template.FuncMap{"include": func(string, any) string { return "" }}).Parse(fmt.Sprintf("{{include %q nil}}", n.Name))
	if err != nil {
		return nil, fmt.Errorf("including template %q: %w", n.Name, err)
	}
	action := t.Root.Nodes[0].(*parse.ActionNode)
	if n.Pipe != nil {
		action.Pipe.Cmds[0].Args[2] = n.Pipe
	}
	return action, nil
}

func printableCommand() (*parse.CommandNode, error) {
	t, err := template.New("").Funcs(template.FuncMap{printable: func() string { return "" }}).Parse("{{" + printable + "}}")
	if err != nil {
		return nil, fmt.Errorf("adding a check of values: %w", err)
	}
	return t.Root.Nodes[0].(*parse.ActionNode).Pipe.Cmds[0], nil
}
