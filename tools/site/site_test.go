package main

import (
	"encoding/json"
	"html"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func made(t *testing.T, files map[string]string) (map[string][]byte, error) {
	t.Helper()
	root := fstest.MapFS{}
	for name, content := range files {
		root[name] = &fstest.MapFile{Data: []byte(content)}
	}
	pages, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := render(pages, repository{root, ""})
	return out, err
}

// hrefs are links of a page as it is written, and places where they lead to.
var (
	hrefs  = regexp.MustCompile(`<(?:a|img|link|script)[^>]* (?:href|src)="([^"]*)"`)
	places = regexp.MustCompile(` id="([^"]*)"`)
)

// TestHandbook makes the site of the handbook, so that a link that leads nowhere is found here.
func TestHandbook(t *testing.T) {
	pages, err := read(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := render(pages, repository{os.DirFS("../.."), ""})
	if err != nil {
		t.Fatal(err)
	}
	links, ids := 0, map[string]bool{}
	for name, content := range files {
		for _, found := range places.FindAllStringSubmatch(string(content), -1) {
			ids[name+"#"+found[1]] = true
		}
	}
	for name, content := range files {
		for _, found := range hrefs.FindAllStringSubmatch(string(content), -1) {
			to := html.UnescapeString(found[1])
			if !strings.HasSuffix(name, ".html") || strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			links++
			file, id, _ := strings.Cut(to, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, there := files[target]; !there || id != "" && !ids[target+"#"+id] {
				t.Errorf("%s: link %s leads nowhere", name, to)
			}
		}
		for _, far := range []string{`src="http`, `<link rel="stylesheet" href="http`, "@import", "url(http"} {
			if strings.Contains(string(content), far) && (strings.HasSuffix(name, ".html") || strings.HasSuffix(name, ".css")) {
				t.Errorf("%s needs the network: %s", name, far)
			}
		}
	}
	if links < 1000 {
		t.Errorf("only %d links were found", links)
	}
}

// TestEveryPageIsNamed expects the README to lead to every page: it is where readers begin.
func TestEveryPageIsNamed(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 40 {
		t.Fatal(len(pages), err)
	}
	for _, page := range pages {
		if link := "](docs/" + filepath.Base(page) + ")"; !strings.Contains(string(readme), link) {
			t.Errorf("README.md does not name docs/%s: add it to its last section", filepath.Base(page))
		}
	}
}

func TestRender(t *testing.T) {
	files, err := made(t, map[string]string{
		"README.md":           "# Product\n\nSee [etcd](docs/etcd.md#a-member-fails).\n",
		"docs/etcd.md":        "# etcd\n\n## A member fails\n\nBack to [the first](../README.md), [reasons](reference/r.md).\n\n## A member fails\n",
		"docs/reference/r.md": "# Reasons\n\n| a | b |\n|---|---|\n| `X` | <script>alert(1)</script> |\n| <a id=\"place\"></a>`Y` | [back](#place) |\n\n<a id=\"alone\"></a>\n",
		"docs/picture.svg":    "<svg/>",
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"index.html":            `<a href="docs/etcd.html#a-member-fails">etcd</a>`,
		"docs/etcd.html":        `<a href="../docs/reference/r.html">reasons</a>`,
		"docs/reference/r.html": "<td><code>X</code></td>",
		"docs/picture.svg":      "<svg/>",
	} {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("%s has no %s:\n%s", name, want, files[name])
		}
	}
	for _, want := range []string{`<td><a id="place"></a><code>Y</code></td>`, `<a id="alone"></a>`} {
		if !strings.Contains(string(files["docs/reference/r.html"]), want) {
			t.Errorf("docs/reference/r.html has no %s:\n%s", want, files["docs/reference/r.html"])
		}
	}
	if strings.Contains(string(files["docs/reference/r.html"]), "<script>alert") {
		t.Error("HTML of a page is passed on")
	}
	if !strings.Contains(string(files["docs/etcd.html"]), `id="a-member-fails-1"`) {
		t.Error("two headings of one name have one anchor")
	}
	var hits []hit
	if err := json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(string(files["search.js"]), "window.PAGES="), ";\n")), &hits); err != nil || len(hits) != 3 {
		t.Fatal(err, hits)
	}
}

func TestLinksThatLeadNowhere(t *testing.T) {
	for link, want := range map[string]string{"gone.md": "leads to no page", "#gone": "leads to no heading", "b.md#gone": "leads to no heading of docs/b.md"} {
		_, err := made(t, map[string]string{"docs/a.md": "# A\n\n[x](" + link + ")\n", "docs/b.md": "# B\n"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", link, err)
		}
	}
}

func TestDiagrams(t *testing.T) {
	const source = "flowchart LR\n  a --> b\n"
	page := "# A\n\n```mermaid\n" + source + "```\n\n```mermaid\nflowchart TB\n```\n"
	root := fstest.MapFS{
		"docs/a.md":       {Data: []byte(page)},
		pictureOf(source): {Data: []byte("<svg><style>a{b:c}</style><text>Label</text></svg>")},
	}
	pages, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	files, missing, err := render(pages, repository{root, ""})
	if err != nil {
		t.Fatal(err)
	}
	content := string(files["docs/a.html"])
	if !strings.Contains(content, "<text>Label</text>") || !strings.Contains(content, "a --&gt; b") {
		t.Errorf("the picture or its text is not on the page:\n%s", content)
	}
	if len(missing) != 1 || !strings.Contains(content, `<code class="language-mermaid">flowchart TB`) {
		t.Errorf("a diagram without a picture is not shown as text: %q\n%s", missing, content)
	}
	if found := string(files["search.js"]); !strings.Contains(found, "Label") || strings.Contains(found, "b:c") {
		t.Errorf("the search knows %s", found)
	}
	if _, there := files[pictureOf(source)]; there {
		t.Error("the picture is there twice")
	}
}

func TestFilesOfTheRepository(t *testing.T) {
	root := fstest.MapFS{"docs/a.md": {Data: []byte("# A\n\nSee [the `code`](../internal/x.go).\n")}, "internal/x.go": {Data: []byte("package x\n")}}
	pages, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"":                         "<p>See the <code>code</code>.</p>",
		"https://git.example.com/": `See <a href="https://git.example.com/internal/x.go">the <code>code</code></a>.`,
	} {
		files, _, err := render(pages, repository{root, source})
		if err != nil || !strings.Contains(string(files["docs/a.html"]), want) {
			t.Errorf("with -source %q: %v\n%s", source, err, files["docs/a.html"])
		}
	}
	if _, err := made(t, map[string]string{"docs/a.md": "[x](../internal/gone.go)\n"}); err == nil || !strings.Contains(err.Error(), "leads to no file of the repository") {
		t.Error(err)
	}
}
