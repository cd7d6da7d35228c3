package template

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"text/template"
	"text/template/parse"
	"time"
)

// Limits of one rendering. The largest object that an API server takes is 1.5 MiB.
const (
	maxOutput = 4 << 20
	maxTime   = 2 * time.Second
	// maxInclude is how deep include may go; the message is part of the interface.
	maxInclude = 1000
)

var (
	errOutput = errors.New("template gives more than 4 MiB")
	errTime   = errors.New("template takes longer than 2 s")
	errDepth  = errors.New("exceeded max include recursion depth")
)

// Execute renders a template with data. Missing keys are errors. It ends within the limits whatever the template does.
func Execute(ctx context.Context, text string, data any) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, errTime)
	defer cancel()
	t := template.New("").Option("missingkey=error").Funcs(Functions())
	depth := 0
	t.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			if depth++; depth > maxInclude {
				return "", errDepth
			}
			defer func() { depth-- }()
			out := &limited{ctx: ctx}
			err := t.ExecuteTemplate(out, name, data)
			for _, limit := range []error{errDepth, errTime, errOutput} {
				if errors.Is(err, limit) {
					return "", limit // once; every level of it would say the same, until the reason is cut off
				}
			}
			return out.String(), err
		},
		tick: func() (string, error) { return "", context.Cause(ctx) },
	})
	t, err := t.Parse(text)
	if err != nil {
		return nil, err
	}
	for _, each := range t.Templates() {
		if each.Tree != nil {
			if err := addTicks(each.Root); err != nil {
				return nil, err
			}
		}
	}
	out := &limited{ctx: ctx}
	if err := t.Execute(out, data); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// limited is a buffer that refuses more than maxOutput, or anything once ctx is done.
type limited struct {
	bytes.Buffer
	ctx context.Context //nolint:containedctx // a writer has no other way to hear of it
}

func (l *limited) Write(p []byte) (int, error) {
	if err := context.Cause(l.ctx); err != nil {
		return 0, err
	}
	if l.Len()+len(p) > maxOutput {
		return 0, errOutput
	}
	return l.Buffer.Write(p)
}

// tick is the function that looks at the time. Nothing else stops a loop without output.
const tick = "internalTick"

// addTicks makes every loop and every template look at the time first.
func addTicks(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		var branches []*parse.ListNode
		switch n := node.(type) {
		case *parse.RangeNode:
			branches = []*parse.ListNode{n.List, n.ElseList}
		case *parse.IfNode:
			branches = []*parse.ListNode{n.List, n.ElseList}
		case *parse.WithNode:
			branches = []*parse.ListNode{n.List, n.ElseList}
		}
		for _, b := range branches {
			if err := addTicks(b); err != nil {
				return err
			}
		}
	}
	action, err := template.New("").Funcs(template.FuncMap{tick: func() string { return "" }}).Parse("{{" + tick + "}}")
	if err != nil {
		return fmt.Errorf("adding a check of the time: %w", err)
	}
	list.Nodes = append([]parse.Node{action.Root.Nodes[0]}, list.Nodes...)
	return nil
}
