package gotemplate

import (
	"context"
	"fmt"
	"reflect"
	"text/template"
	"text/template/parse"
)

// budget counts what the functions of one rendering produce.
type budget struct {
	ctx                  context.Context // functions of templates have no other way to hear of it
	produced, containers int
}

// unguarded only look at values, or hand them on.
var unguarded = map[string]bool{"hasKey": true, "get": true, "default": true, "empty": true, "ternary": true, "kindIs": true, "kindOf": true, "typeOf": true, "typeIs": true, "typeIsLike": true, "include": true}

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
	out["printf"] = b.wrap("printf", sprintf)
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
			err = Short(fmt.Errorf("%s: %w", name, err))
			return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&err).Elem()}
		}
		if err := context.Cause(b.ctx); err != nil {
			return fail(err)
		}
		size, err := sizeOf(args)
		if err != nil {
			return fail(err)
		}
		if check := checks[name]; check != nil {
			if err := check(args, size); err != nil {
				return fail(err)
			}
		}
		out := call(args)
		if len(out) == 1 {
			out = append(out, reflect.Zero(errorType))
		}
		if err, failed := out[1].Interface().(error); failed {
			return fail(err)
		}
		if size, err = sizeOf(out[:1]); err != nil {
			return fail(err)
		}
		if err := b.count(name, out[0], size); err != nil {
			return fail(err)
		}
		return out
	}
	return reflect.MakeFunc(reflect.FuncOf(in, results, t.IsVariadic()), wrapped).Interface()
}

// handsOn are functions whose result is one of their arguments, or a part of one.
var handsOn = map[string]bool{
	"set": true, "unset": true, "merge": true, "mergeOverwrite": true, "mustMerge": true, "mustMergeOverwrite": true, "first": true, "mustFirst": true,
	"last": true, "mustLast": true, "coalesce": true, "dig": true, "slice": true, "mustSlice": true, "get": true,
}

// makesAll are functions whose result is new in all its parts. Of others it is the outermost list or map.
var makesAll = map[string]bool{
	"fromJson": true, "mustFromJson": true, "fromYAML": true, "deepCopy": true, "mustDeepCopy": true, "getFileGlob": true, "b64decMap": true, "chunk": true, "mustChunk": true,
}

// count takes a new value from the budget. Variables may hold all that was ever made.
func (b *budget) count(name string, v reflect.Value, size int) error {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	const perItem, perEntry = 16, 64 // what lists and maps really take
	switch {
	case v.Kind() == reflect.String:
		b.produced += v.Len()
	case handsOn[name]:
	case makesAll[name]:
		b.containers += size * 2
	case v.Kind() == reflect.Slice:
		b.containers += v.Len() * perItem
	case v.Kind() == reflect.Map:
		b.containers += v.Len() * perEntry
	}
	switch {
	case b.produced > maxProduced:
		return errProduced
	case b.containers > maxContainers:
		return errContainers
	}
	return nil
}

// sizeOf measures values together.
func sizeOf(values []reflect.Value) (int, error) {
	left := maxValue
	for _, v := range values {
		if err := measure(v, &left, 0); err != nil {
			return 0, err
		}
	}
	return maxValue - left, nil
}

// measure takes the size of a value from what is left.
func measure(v reflect.Value, left *int, depth int) error {
	if depth > maxDepth {
		return errNested
	}
	const perValue, perNumber = 16, 8
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
			*left -= v.Len() * perNumber
			break
		}
		for i := range v.Len() {
			if err := measure(v.Index(i), left, depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			if err := measure(iter.Key(), left, depth+1); err != nil {
				return err
			}
			if err := measure(iter.Value(), left, depth+1); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := measure(v.Field(i), left, depth+1); err != nil {
				return err
			}
		}
	}
	if *left < 0 {
		return errValue
	}
	return nil
}

// printable is the function that looks at what a template prints, before it is turned into text.
const printable = "internalPrintable"

func (b *budget) printable(v reflect.Value) (reflect.Value, error) {
	left := maxValue
	if !v.IsValid() {
		return reflect.ValueOf(""), nil // what isn't found prints nothing, and not "<no value>"
	}
	return v, measure(v, &left, 0)
}

// addPrintable makes every action that prints look at the value first.
func addPrintable(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for i, node := range list.Nodes {
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
		}
		for _, branch := range branchesOf(node) {
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
