// Command site makes a static site of the handbook: every page of docs/, and the texts of the root that readers look for. It needs no network, neither to
// be made nor to be read, and a search works from files alone.
//
//	go run ./site [-root ..] [-out ../dist/site]
//
// A link that leads nowhere, to a page or to a heading, is an error.
package main

import (
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
	flag.Parse()
	if err := run(*root, *out); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

func run(root, out string) error {
	pages, err := read(os.DirFS(root))
	if err != nil {
		return err
	}
	files, err := render(pages)
	if err != nil {
		return err
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
