package main

import (
	"regexp"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// anchor is the one piece of HTML that pages have: a place that links lead to, where there is no heading.
var anchor = regexp.MustCompile(`<a id="([A-Za-z0-9_.-]+)">`)

// anchors renders HTML of pages: places that links lead to, and nothing else.
type anchors struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (anchors) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkSkipChildren, writeAnchors(w, n.(*ast.RawHTML).Segments, source)
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		return ast.WalkContinue, writeAnchors(w, n.(*ast.HTMLBlock).Lines(), source)
	})
}

func writeAnchors(w util.BufWriter, lines *text.Segments, source []byte) error {
	for _, found := range anchor.FindAllSubmatch(lines.Value(source), -1) {
		if _, err := w.WriteString(`<a id="` + string(found[1]) + `"></a>`); err != nil {
			return err
		}
	}
	return nil
}
