package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: apidocs API-FOLDER OUTPUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "apidocs:", err)
		os.Exit(1)
	}
}

func run(folder, output string) error {
	packages, err := load(folder)
	if err != nil {
		return err
	}
	text := render(packages)
	if old, err := os.ReadFile(output); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return os.WriteFile(output, text, 0o644)
}

// load reads every package of a module that has exported types, sorted by folder.
func load(module string) ([]*pkg, error) {
	var folders []string
	err := filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(folders)
	var all []*pkg
	for _, folder := range folders {
		p, err := parse(folder, strings.TrimPrefix(strings.TrimPrefix(folder, module), string(filepath.Separator)))
		if err != nil {
			return nil, fmt.Errorf("reading package %s: %w", folder, err)
		}
		if p != nil {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no package with types in %s", module)
	}
	return all, nil
}
