package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

//go:embed assets
var assets embed.FS

// maxText bounds what the search knows of a page; pages of reference are longer, and their headings are known in full.
const maxText = 20_000

// document is a page that was parsed.
type document struct {
	page
	root     ast.Node
	title    string
	headings []heading
	ids      map[string]bool
}

type heading struct {
	ID    string `json:"id"`
	Text  string `json:"t"`
	Level int    `json:"-"`
}

// hit is what the search knows of a page.
type hit struct {
	URL      string    `json:"u"`
	Title    string    `json:"t"`
	Headings []heading `json:"h,omitempty"`
	Text     string    `json:"x"`
}

func markdown() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(diagrams{}, 100), util.Prioritized(anchors{}, 100))))
}

// render returns the files of the site, and the diagrams that have no picture.
func render(pages []page, repo repository) (files map[string][]byte, missing []string, err error) {
	md := markdown()
	files = map[string][]byte{}
	var docs []*document
	byPath := map[string]*document{}
	there := map[string]bool{}
	for _, p := range pages {
		there[p.path] = true
		if !strings.HasSuffix(p.path, ".md") {
			files[p.path] = p.raw
			continue
		}
		d := parse(md, p)
		docs = append(docs, d)
		byPath[p.path] = d
	}
	var errs []error
	var hits []hit
	for _, d := range docs {
		errs = append(errs, d.link(byPath, there, repo))
		missing = append(missing, d.draw(files)...)
		var body bytes.Buffer
		if err := md.Renderer().Render(&body, d.raw, d.root); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", d.path, err)
		}
		out, err := frame(d, body.String(), docs)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", d.path, err)
		}
		files[urlOf(d.path)] = out
		plain := textOf(body.String())
		hits = append(hits, hit{URL: urlOf(d.path), Title: d.title, Headings: d.headings, Text: plain[:min(len(plain), maxText)]})
	}
	index, err := json.Marshal(hits)
	files["search.js"] = append(append([]byte("window.PAGES="), index...), ';', '\n')
	for _, name := range []string{"site.css", "site.js"} {
		raw, err := assets.ReadFile("assets/" + name)
		errs = append(errs, err)
		files[name] = raw
	}
	for name := range files {
		if strings.HasPrefix(name, drawn) {
			delete(files, name) // they are in the pages
		}
	}
	return files, missing, errors.Join(append(errs, err)...)
}

// urlOf is where a page is in the site. The README is its first.
func urlOf(name string) string {
	if name == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(name, ".md") + ".html"
}

func parse(md goldmark.Markdown, p page) *document {
	d := &document{page: p, root: md.Parser().Parse(text.NewReader(p.raw), parser.WithContext(parser.NewContext(parser.WithIDs(newIDs())))), ids: map[string]bool{}}
	d.title = strings.TrimSuffix(path.Base(p.path), ".md")
	first := true
	_ = ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // which gives no errors
		h, ok := n.(*ast.Heading)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		id, _ := h.AttributeString("id")
		raw, _ := id.([]byte)
		d.ids[string(raw)] = true
		words := plainOf(h, p.raw)
		if first {
			d.title, first = words, false
		} else if h.Level <= 3 {
			d.headings = append(d.headings, heading{ID: string(raw), Text: words, Level: h.Level})
		}
		return ast.WalkContinue, nil
	})
	return d
}

// plainOf is the text of a node without its marks.
func plainOf(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Value(source))
			continue
		}
		b.WriteString(plainOf(c, source))
	}
	return b.String()
}

// link makes links between pages lead to pages of the site, and returns an error for those that lead nowhere.
func (d *document) link(byPath map[string]*document, there map[string]bool, repo repository) error {
	var errs []error
	var nowhere []*ast.Link
	_ = ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // which gives no errors
		var destination *[]byte
		switch n := n.(type) {
		case *ast.Link:
			destination = &n.Destination
		case *ast.Image:
			destination = &n.Destination
		}
		if destination == nil || !entering {
			return ast.WalkContinue, nil
		}
		target, err := d.resolve(string(*destination), byPath, there, repo)
		if err != nil {
			errs = append(errs, err)
		}
		if link, ok := n.(*ast.Link); ok && target == "" {
			nowhere = append(nowhere, link)
		}
		*destination = []byte(target)
		return ast.WalkContinue, nil
	})
	for _, link := range nowhere { // its words stay
		for c := link.FirstChild(); c != nil; c = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, c)
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
	return errors.Join(errs...)
}

// resolve is where a link of a page leads to in the site; empty if to a file of the repository that readers of the site can't have.
func (d *document) resolve(link string, byPath map[string]*document, there map[string]bool, repo repository) (string, error) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return link, nil
	}
	name, anchor, hasAnchor := strings.Cut(link, "#")
	target := d.path
	if name != "" {
		target = path.Join(path.Dir(d.path), name)
	}
	other := byPath[target]
	switch {
	case other == nil && there[target]:
		return link, nil
	case other == nil && path.Ext(target) == ".md":
		return link, fmt.Errorf("%s: link %s leads to no page", d.path, link)
	case other == nil:
		if _, err := fs.Stat(repo.files, target); err != nil {
			return link, fmt.Errorf("%s: link %s leads to no file of the repository", d.path, link)
		}
		if repo.source == "" {
			return "", nil
		}
		return repo.source + target, nil
	case hasAnchor && !other.ids[anchor] && !bytes.Contains(other.raw, []byte(`<a id="`+anchor+`"`)):
		return link, fmt.Errorf("%s: link %s leads to no heading of %s", d.path, link, target)
	}
	url := relative(urlOf(d.path), urlOf(target))
	if hasAnchor {
		url += "#" + anchor
	}
	return url, nil
}

// relative is the way from one page to another.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

// section is a part of the navigation.
type section struct {
	Title string
	Pages []entry
}

type entry struct {
	URL, Title string
	Current    bool
}

// navigation lists all pages: guides, then reference, then decisions.
func navigation(d *document, docs []*document) []section {
	sections := []section{{Title: "Handbook"}, {Title: "Reference"}, {Title: "Project"}, {Title: "Decisions"}}
	for _, other := range docs {
		at := 0
		switch {
		case strings.HasPrefix(other.path, "docs/reference/"):
			at = 1
		case strings.HasPrefix(other.path, "docs/decisions/"):
			at = 3
		case !strings.Contains(other.path, "/") && other.path != "README.md":
			at = 2
		}
		sections[at].Pages = append(sections[at].Pages, entry{relative(urlOf(d.path), urlOf(other.path)), other.title, other == d})
	}
	for i := range sections {
		slices.SortStableFunc(sections[i].Pages, func(a, b entry) int { return strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)) })
	}
	return slices.DeleteFunc(sections, func(s section) bool { return len(s.Pages) == 0 })
}

var frameTemplate = template.Must(template.ParseFS(assets, "assets/page.html"))

func frame(d *document, body string, docs []*document) ([]byte, error) {
	var out bytes.Buffer
	err := frameTemplate.Execute(&out, map[string]any{
		"Title": d.title, "Root": relative(urlOf(d.path), ""), "Body": template.HTML(body), // of our own pages
		"Sections": navigation(d, docs), "Headings": d.headings,
	})
	return out.Bytes(), err
}

var tags = regexp.MustCompile(`(?s)<style>.*?</style>|<[^>]*>`)

// textOf is what a reader sees of a page.
func textOf(body string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
}
