// Package config holds the generated CustomResourceDefinitions, so that the CLI can install them and tests can serve them.
package config

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	// DefaultSet is the set of CustomResourceDefinitions that an installation gets when it does not ask for another one.
	DefaultSet = "default"
	// TechPreviewSet is the default set and previews.
	TechPreviewSet = "techpreview"
)

// ErrUnknownSet is what CRDs returns, wrapped, for a set that does not exist.
var ErrUnknownSet = errors.New("unknown set of CustomResourceDefinitions")

//go:embed crd capi capiprivate packageoperator providers providersprivate
var files embed.FS

// capi is the folder of Cluster API's definitions.
const capi = "capi"

// capiPrivate is the folder of their twins in HyperShift's groups.
const capiPrivate = "capiprivate"

// packageOperator is the folder of the package operator's definitions.
const packageOperator = "packageoperator"

// hosted is the folder with what hosted clusters serve; it is no set.
const hosted = "hosted"

// Sets returns the names of the sets that CRDs knows, sorted.
func Sets() []string { return []string{DefaultSet, TechPreviewSet} }

// HostedCRDs returns the CustomResourceDefinitions of kinds that belong in hosted clusters, sorted by name. No operator installs them yet: they are of
// Karpenter, which no platform here has. Tests of the API install them, so that they stay what Karpenter expects.
func HostedCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	if err := read(path.Join("crd", hosted), byName); err != nil {
		return nil, err
	}
	return sorted(byName), nil
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
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	if err := read(path.Join("crd", set), byName); err != nil {
		return nil, err
	}
	return sorted(byName), nil
}

func sorted(byName map[string]*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	return slices.SortedFunc(maps.Values(byName), func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// CAPICRDs returns the CustomResourceDefinitions of Cluster API's own kinds, sorted by name. Only their storage version is served, so that
// nothing has to convert them; see ConvertedCAPICRDs.
func CAPICRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	if err := read(capi, byName); err != nil {
		return nil, err
	}
	storedOnly(byName)
	return sorted(byName), nil
}

// PrivateCAPICRDs returns the twins of CAPICRDs, and of the local provider's definitions, in groups that are HyperShift's alone,
// sorted by name. Only their storage version is served; see ConvertedPrivateCAPICRDs.
func PrivateCAPICRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	if err := read(capiPrivate, byName); err != nil {
		return nil, err
	}
	storedOnly(byName)
	return sorted(byName), nil
}

// Folders of the definitions of infrastructure providers, and of their twins in HyperShift's groups.
const (
	providers        = "providers"
	providersPrivate = "providersprivate"
)

// ProviderCRDs returns the CustomResourceDefinitions of the infrastructure provider of a platform such as AWS, sorted by name; private are its twins in
// HyperShift's groups. There are none of platforms that have no provider, or one whose definitions can't be had.
func ProviderCRDs(platform string, private bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	folder := providers
	if private {
		folder = providersPrivate
	}
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	if err := read(path.Join(folder, strings.ToLower(platform)), byName); err != nil {
		return nil, err
	}
	return sorted(byName), nil
}

// PackageOperatorCRDs returns the CustomResourceDefinitions of the group package-operator.run, sorted by name.
func PackageOperatorCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	if err := read(packageOperator, byName); err != nil {
		return nil, err
	}
	return sorted(byName), nil
}

// read adds what a folder holds to into, and replaces what is there already. Each definition belongs to the caller.
func read(folder string, into map[string]*apiextensionsv1.CustomResourceDefinition) error {
	parsed.Lock()
	defer parsed.Unlock()
	list, ok := parsed.folders[folder]
	if !ok {
		var err error
		if list, err = parse(folder); err != nil {
			return err
		}
		parsed.folders[folder] = list
	}
	for _, crd := range list {
		into[crd.Name] = crd.DeepCopy()
	}
	return nil
}

// parsed are definitions by their folders, as they were parsed first: a megabyte of YAML takes a third of a second, a copy of what it says a hundredth of that,
// and rendering an installation reads some folders several times.
var parsed = struct {
	sync.Mutex
	folders map[string][]*apiextensionsv1.CustomResourceDefinition
}{folders: map[string][]*apiextensionsv1.CustomResourceDefinition{}}

func parse(folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(files, path.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing folder %s: %w", folder, err)
	}
	list := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(names))
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", name, err)
		}
		list = append(list, crd)
	}
	return list, nil
}
