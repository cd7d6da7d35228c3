// Command modulepaths gives the modules of this repository the address that they are published at. It is the one place that sets it:
//
//	go run ./hack/modulepaths -root github.com/acme/hcp
//
// The module in the root of the repository gets that path, and each module in a folder gets the path with the folder behind it, where the go command
// looks for it: api becomes github.com/acme/hcp/api, and others can import it once a tag such as api/v0.1.0 is there. All files that name a module are
// rewritten, each whole or not at all; run twice, the second run changes nothing.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	// modulePath is the line of a go.mod that names the module.
	modulePath = regexp.MustCompile(`(?m)^module[ \t]+"?([^\s"]+)`)
	// address is what the go command can fetch a module from: a host with a dot, and a path.
	address = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)
)

// example begins the paths of modules that stand for those of others.
const example = "example.com/"

func main() {
	root := flag.String("root", "", "path of the module in the root of the repository, as github.com/acme/hcp")
	dir := flag.String("dir", ".", "the repository")
	flag.Parse()
	changed, err := rename(*dir, *root)
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("%d files were changed; run make build and make test-unit\n", changed)
}

// rename rewrites all files of a repository, and returns how many changed.
func rename(dir, root string) (changed int, err error) {
	if !address.MatchString(root) {
		return 0, fmt.Errorf("-root: %q is no path of a module: write the address of the repository, as github.com/acme/hcp", root)
	}
	files, err := sources(dir)
	if err != nil {
		return 0, err
	}
	paths, err := modules(dir, root, files)
	if err != nil {
		return 0, err
	}
	replace := replacer(paths)
	for _, name := range files {
		did, err := rewrite(filepath.Join(dir, name), replace)
		if err != nil {
			return changed, fmt.Errorf("rewriting %s: %w", name, err)
		}
		if did {
			changed++
		}
	}
	return changed, nil
}

// made are folders that hold nothing of a repository but what was made of it, and those of tools.
var made = []string{".git", ".cache", ".local", "bin", "dist", "node_modules"}

// sources are the files of a repository, relative to it. Links are left alone.
func sources(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains(made, name), e.IsDir() && e.Name() == "node_modules":
			return filepath.SkipDir
		case e.Type().IsRegular():
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// modules are the paths of our modules now, and those that they get.
func modules(dir, root string, files []string) (map[string]string, error) {
	paths := map[string]string{}
	for _, name := range files {
		if filepath.Base(name) != "go.mod" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		line := modulePath.FindSubmatch(data)
		if line == nil {
			return nil, fmt.Errorf("%s names no module", name)
		}
		if old := string(line[1]); !strings.HasPrefix(old, example) {
			paths[old] = path.Join(root, filepath.ToSlash(filepath.Dir(name)))
		}
	}
	if len(paths) == 0 {
		return nil, errors.New("there is no go.mod; -dir names the folder of the repository")
	}
	return paths, nil
}

// replacer replaces paths where they stand alone or something follows that belongs to a package. A path that only
// begins as one of them stays.
func replacer(paths map[string]string) func([]byte) []byte {
	var quoted []string
	for old := range paths {
		quoted = append(quoted, regexp.QuoteMeta(old))
	}
	slices.SortFunc(quoted, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // the first that fits counts
	found := regexp.MustCompile(`(^|[^\w./-])(` + strings.Join(quoted, "|") + `)($|[^\w-])`)
	one := func(text []byte) []byte {
		return found.ReplaceAllFunc(text, func(hit []byte) []byte {
			parts := found.FindSubmatch(hit)
			return slices.Concat(parts[1], []byte(paths[string(parts[2])]), parts[3])
		})
	}
	// What ends one hit may begin the next, which is found the second time.
	return func(text []byte) []byte { return one(one(text)) }
}

// rewrite changes a file if it has to be. Imports are sorted anew, because gofmt wants them so.
func rewrite(file string, replace func([]byte) []byte) (bool, error) {
	before, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	if bytes.IndexByte(before, 0) >= 0 { // no text
		return false, nil
	}
	after := replace(before)
	if bytes.Equal(after, before) {
		return false, nil
	}
	if strings.HasSuffix(file, ".go") {
		if after, err = format.Source(after); err != nil {
			return false, err
		}
	}
	info, err := os.Stat(file)
	if err != nil {
		return false, err
	}
	if err := os.WriteFile(file+".new", after, info.Mode().Perm()); err != nil {
		return false, err
	}
	return true, os.Rename(file+".new", file)
}
