package describe

import (
	"fmt"
	"io"
	"strings"

	"hcp.internal/platform/internal/why"
)

// Node is an object of the tree, or a group of them that has no health of its own.
type Node struct {
	// Kind and Name name the object; a group has the Kind alone, as "NodePools".
	Kind        string `json:"kind"`
	Name        string `json:"name,omitempty"`
	why.Finding `json:",inline"`
	// Note is what else is worth a glance, as a version.
	Note string `json:"note,omitempty"`
	// Hidden is how many objects of the kind are well and not shown; such a node stands for them.
	Hidden   int     `json:"hidden,omitempty"`
	Children []*Node `json:"children,omitempty"`
}

// well tells whether nothing of it needs a look.
func (n *Node) well() bool {
	if n.Health != "" && !n.Health.Well() {
		return false
	}
	for _, c := range n.Children {
		if !c.well() {
			return false
		}
	}
	return true
}

// prune takes out what is well, and says how many objects that were. The root stays.
func (n *Node) prune() {
	var left []*Node
	hidden := map[string]int{}
	var kinds []string
	for _, c := range n.Children {
		if c.well() {
			if hidden[c.Kind] == 0 {
				kinds = append(kinds, c.Kind)
			}
			hidden[c.Kind]++
			continue
		}
		c.prune()
		left = append(left, c)
	}
	for _, k := range kinds {
		left = append(left, &Node{Kind: k, Hidden: hidden[k]})
	}
	n.Children = left
}

func wellText(kind string, n int) string {
	switch {
	case n > 1:
		return fmt.Sprintf("%d %ss: well", n, kind)
	case strings.HasSuffix(kind, "s"): // a group
		return kind + ": well"
	}
	return "1 " + kind + ": well"
}

// line is a node as it is printed.
func (n *Node) line() string {
	if n.Hidden > 0 {
		return wellText(n.Kind, n.Hidden)
	}
	parts := []string{n.Kind}
	if n.Name != "" {
		parts = append(parts, n.Name)
	}
	text := strings.Join(parts, " ")
	if n.Note != "" {
		text += "  (" + n.Note + ")"
	}
	if n.Health != "" {
		text += "  " + string(n.Health)
	}
	if n.Cause != "" {
		text += ": " + n.Cause
	}
	return text
}

// print draws the tree.
func (n *Node) print(w io.Writer) error {
	if _, err := fmt.Fprintln(w, n.line()); err != nil {
		return err
	}
	return n.branches(w, "")
}

func (n *Node) branches(w io.Writer, indent string) error {
	for i, c := range n.Children {
		branch, next := "├─ ", "│  "
		if i == len(n.Children)-1 {
			branch, next = "└─ ", "   "
		}
		if _, err := fmt.Fprintln(w, indent+branch+c.line()); err != nil {
			return err
		}
		if err := c.branches(w, indent+next); err != nil {
			return err
		}
	}
	return nil
}
