// Command site makes a static site of the handbook: every page of docs/, and the texts of the root that readers look for. It needs no network, neither to
// be made nor to be read, and a search works from files alone.
//
//	go run ./site [-root ..] [-out ../dist/site] [-source https://git.example.com/team/hypershift/blob/main/]
//	go run ./site -draw mermaid.min.js [-browser chromium]
//
// A link that leads nowhere, to a page, a heading or a file of the repository, is an error. Files that are not of the site are at -source; without it, what
// leads to them is text. With -draw, it draws the diagrams that have no picture yet instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", "..", "folder of the repository")
	out := flag.String("out", "../dist/site", "folder to write; it must not be there, or be a site")
	source := flag.String("source", "", "where files of the repository can be read, with a slash at its end; links to them are left out without it")
	mermaid := flag.String("draw", "", "file mermaid.min.js; draws diagrams into "+drawn+" instead of making a site")
	browser := flag.String("browser", "chromium", "program that draws: Chromium or Chrome")
	flag.Parse()
	do := func() error { return run(*root, *out, *source) }
	if *mermaid != "" {
		do = func() error { return drawAll(context.Background(), *root, *browser, *mermaid) }
	}
	if err := do(); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

func run(root, out, source string) error {
	pages, err := read(os.DirFS(root))
	if err != nil {
		return err
	}
	files, missing, err := render(pages, repository{os.DirFS(root), source})
	if err != nil {
		return err
	}
	for _, text := range missing {
		fmt.Fprintf(os.Stderr, "Warning: this diagram has no picture and is shown as text; run make diagrams:\n%s\n", text)
	}
	if _, err := os.Stat(filepath.Join(out, "search.js")); err == nil {
		if err := os.RemoveAll(out); err != nil { // the site of before
			return err
		}
	}
	for name, data := range files {
		file := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// repository has the files that are not of the site.
type repository struct {
	files  fs.FS
	source string // where readers of the site find them; empty: nowhere
}

// page is a text, by its path in the repository.
type page struct {
	path string
	raw  []byte
}

// outside are pages that are not below docs.
var outside = []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}

// read returns the pages of a repository, sorted by path.
func read(root fs.FS) ([]page, error) {
	var pages []page
	add := func(name string) error {
		raw, err := fs.ReadFile(root, name)
		pages = append(pages, page{name, raw})
		return err
	}
	for _, name := range outside {
		if err := add(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	pages = slices.DeleteFunc(pages, func(p page) bool { return p.raw == nil })
	err := fs.WalkDir(root, "docs", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return add(name) // also what pages show and link to, as it is
	})
	slices.SortFunc(pages, func(a, b page) int { return strings.Compare(a.path, b.path) })
	return pages, err
}
