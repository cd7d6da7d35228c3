package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// embedding is a package of this repository that has something of others in it which is no Go module.
type embedding struct {
	// manifest is an npm package.json, relative to the root of the repository, that names versions.
	manifest string
	parts    []part
}

// part is an npm package, and the file with its licence, relative to the root of the repository.
type part struct{ name, licence string }

// embeddings, by the path of the package that embeds.
var embeddings = map[string]embedding{
	"hcp.internal/platform/internal/console/assets": {"internal/console/web/package.json", []part{
		{"preact", "internal/console/web/vendor/LICENSE-preact"},
		{"@preact/signals", "internal/console/web/vendor/LICENSE-signals"}, // signals-core too, which is of the same repository
	}},
}

// read returns what is embedded as modules.
func (e embedding) read(root string) ([]Module, error) {
	raw, err := os.ReadFile(filepath.Join(root, e.manifest))
	if err != nil {
		return nil, fmt.Errorf("looking for versions of what is embedded: %w", err)
	}
	var manifest struct {
		DevDependencies map[string]string `json:"devDependencies"`
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return nil, fmt.Errorf("reading %s: %w", e.manifest, err)
	}
	var modules []Module
	for _, p := range e.parts {
		m := Module{Path: p.name, Version: manifest.DevDependencies[p.name], Type: npm}
		if m.Version == "" {
			return nil, fmt.Errorf("%s has no version of %s, which is embedded", e.manifest, p.name)
		}
		text, err := os.ReadFile(filepath.Join(root, p.licence))
		if err != nil {
			return nil, fmt.Errorf("reading the licence of %s: %w", p.name, err)
		}
		m.Texts = []Text{{Name: filepath.Base(p.licence), Data: text}}
		if m.Licences, err = judge(m); err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	return modules, nil
}
