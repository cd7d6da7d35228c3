// Package config holds the generated CustomResourceDefinitions, so that the CLI can install them and tests can serve them.
package config

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// DefaultSet is the set of CustomResourceDefinitions that an installation gets when it does not ask for another one.
const DefaultSet = "default"

// ErrUnknownSet is what CRDs returns, wrapped, for a set that does not exist.
var ErrUnknownSet = errors.New("unknown set of CustomResourceDefinitions")

//go:embed crd
var files embed.FS

// Sets returns the names of the sets, sorted.
func Sets() []string {
	entries, err := files.ReadDir("crd")
	if err != nil {
		panic(fmt.Sprintf("the folder crd is embedded: %v", err))
	}
	var sets []string
	for _, e := range entries {
		if e.IsDir() {
			sets = append(sets, e.Name())
		}
	}
	slices.Sort(sets)
	return sets
}

// CRDs returns the CustomResourceDefinitions of a set, sorted by name. The empty name is the default set. Callers may change
// what they get.
func CRDs(set string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if set == "" {
		set = DefaultSet
	}
	if !slices.Contains(Sets(), set) {
		return nil, fmt.Errorf("%w: %q; there are %s", ErrUnknownSet, set, strings.Join(Sets(), ", "))
	}
	names, err := fs.Glob(files, path.Join("crd", set, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing set %s: %w", set, err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(names))
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", name, err)
		}
		crds = append(crds, crd)
	}
	slices.SortFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return crds, nil
}
