package gotemplate

import (
	"regexp"
	"text/template/parse"
)

// blockWords are actions that open, continue or end a block.
var blockWords = regexp.MustCompile(`\{\{(?:- )?\s*(if|range|with|define|block|else\s+if|else\s+with|end)\b`)

// tooNested says whether blocks of a text nest so deep that parsing it takes much of the stack. It looks at words alone, comments and texts
// included, so it takes ten times what nesting allows.
func tooNested(text string) bool {
	depth := 0
	var open []int // for each open block, how deep it is with its else-ifs, which are blocks in one another
	for _, m := range blockWords.FindAllStringSubmatch(text, -1) {
		switch word := m[1]; {
		case word == "end":
			if len(open) > 0 {
				depth -= open[len(open)-1]
				open = open[:len(open)-1]
			}
		case word[0] == 'e':
			if len(open) > 0 {
				open[len(open)-1]++
				depth++
			}
		default:
			open = append(open, 1)
			depth++
		}
		if depth > 10*maxBlocks {
			return true
		}
	}
	return false
}

// nesting is how deep blocks and parentheses nest below a node. It stops counting past maxBlocks.
func nesting(node parse.Node, above int) int {
	if above > maxBlocks {
		return above
	}
	deepest := above
	look := func(n parse.Node, above int) { deepest = max(deepest, nesting(n, above)) }
	branch := func(n *parse.BranchNode) {
		look(n.Pipe, above+1)
		look(n.List, above+1)
		if n.ElseList != nil {
			look(n.ElseList, above+1)
		}
	}
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			break
		}
		for _, each := range n.Nodes {
			look(each, above)
		}
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.ActionNode:
		look(n.Pipe, above)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			look(n.Pipe, above)
		}
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			look(c, above+1)
		}
	case *parse.CommandNode:
		for _, a := range n.Args {
			look(a, above)
		}
	case *parse.ChainNode:
		look(n.Node, above+1)
	}
	return deepest
}
