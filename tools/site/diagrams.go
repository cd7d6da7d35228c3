package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// Diagrams are blocks of the language mermaid, as GitHub shows them. What draws them wants a browser, so pictures of them are made beforehand (draw.go) and
// lie in the repository, by checksum of their text. Then neither who makes the site nor who reads it needs anything for them.

// drawn is the folder of the pictures.
const drawn = "docs/images/diagrams/"

// pictureOf is where the picture of a diagram is.
func pictureOf(source string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(source)))
	return drawn + hex.EncodeToString(sum[:8]) + ".svg"
}

var kindDiagram = ast.NewNodeKind("Diagram")

// diagram is a block of mermaid that has a picture.
type diagram struct {
	ast.BaseBlock
	source, picture string
}

// Kind implements ast.Node.
func (*diagram) Kind() ast.NodeKind { return kindDiagram }

// Dump implements ast.Node.
func (d *diagram) Dump(source []byte, level int) { ast.DumpHelper(d, source, level, nil, nil) }

// sourcesOf are the diagrams of a page, with the blocks that hold them.
func sourcesOf(root ast.Node, page []byte) (blocks []*ast.FencedCodeBlock, sources []string) {
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // which gives no errors
		if b, ok := n.(*ast.FencedCodeBlock); ok && entering && string(b.Language(page)) == "mermaid" {
			blocks, sources = append(blocks, b), append(sources, string(b.Lines().Value(page)))
		}
		return ast.WalkContinue, nil
	})
	return blocks, sources
}

// draw puts pictures in the place of diagrams, and returns the diagrams that have none: those stay as text.
func (d *document) draw(pictures map[string][]byte) (missing []string) {
	blocks, sources := sourcesOf(d.root, d.raw)
	for i, block := range blocks {
		picture, ok := pictures[pictureOf(sources[i])]
		if !ok {
			missing = append(missing, sources[i])
			continue
		}
		block.Parent().ReplaceChild(block.Parent(), block, &diagram{source: sources[i], picture: string(picture)})
	}
	return missing
}

// diagrams renders them.
type diagrams struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (diagrams) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(kindDiagram, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if d := n.(*diagram); entering {
			_, err := fmt.Fprintf(w, "<figure class=\"diagram\">\n%s\n<details><summary>As text</summary><pre><code>%s</code></pre></details>\n</figure>\n", d.picture, html.EscapeString(d.source))
			return ast.WalkSkipChildren, err
		}
		return ast.WalkContinue, nil
	})
}
