package gotemplate

import (
	"bytes"
	"context"
	"fmt"
	"text/template"
	"text/template/parse"

	"sigs.k8s.io/yaml"
)

// Execute renders one template with data. Missing keys are errors. It ends within the limits whatever the template does.
func Execute(ctx context.Context, text string, data any) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, ErrTime)
	defer cancel()
	set := NewSet(ctx, nil)
	if err := set.Parse("", text); err != nil {
		return nil, err
	}
	if err := set.Seal(); err != nil {
		return nil, err
	}
	return set.Execute("", data)
}

// limited is a buffer that refuses more than maxOutput, or anything once ctx is done.
type limited struct {
	bytes.Buffer
	ctx context.Context // a writer has no other way to hear of it
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

// branchesOf are the lists in a node; one that isn't there is nil.
func branchesOf(node parse.Node) []*parse.ListNode {
	switch n := node.(type) {
	case *parse.RangeNode:
		return []*parse.ListNode{n.List, n.ElseList}
	case *parse.IfNode:
		return []*parse.ListNode{n.List, n.ElseList}
	case *parse.WithNode:
		return []*parse.ListNode{n.List, n.ElseList}
	}
	return nil
}

// addTicks makes every loop and every template look at the time first.
func addTicks(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		for _, b := range branchesOf(node) {
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

// YAMLToJSON converts what a template gave, unless it has too many values. Messages of its errors are of bounded length.
func YAMLToJSON(rendered []byte) ([]byte, error) {
	if tokens(string(rendered)) > maxTokens {
		return nil, errTokens
	}
	out, err := yaml.YAMLToJSON(rendered)
	return out, Short(err)
}
