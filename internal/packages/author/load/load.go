package load

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1alpha1 "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/platform/internal/packages/author/manifest"
	"hcp.internal/platform/internal/packages/author/violation"
)

// components is the folder whose folders are packages of their own.
const components = "components"

// Package is a package, or a component of one, as it can be rendered.
type Package struct {
	Manifest *v1alpha1.PackageManifest
	// Lock is nil without a lock file.
	Lock *v1alpha1.PackageManifestLock
	// Files without manifest and lock file, and without those of components.
	Files Files
	// Component whose package it is, empty for the root.
	Component string
	// Warnings are about what has no effect in manifest and lock file, or is seldom meant.
	Warnings []string
}

// Load reads the package of component, or the root's when it is empty. All errors are violations, and don't go away by trying again.
func Load(ctx context.Context, files Files, component string) (*Package, error) {
	root, err := parse(files, "")
	if err != nil {
		return nil, err
	}
	if root.Manifest.Spec.Components == nil {
		if component != "" {
			return nil, &violation.Error{Reason: violation.ComponentsNotEnabled, Component: component}
		}
		return root, root.check(ctx)
	}
	names, err := componentsOf(files)
	if err != nil {
		return nil, err
	}
	if component == "" {
		for name := range root.Files {
			if strings.HasPrefix(name, components+"/") {
				delete(root.Files, name)
			}
		}
		return root, root.check(ctx)
	}
	if !slices.Contains(names, component) {
		return nil, &violation.Error{Reason: violation.ComponentNotFound, Component: component}
	}
	out, err := parse(files.Below(components+"/"+component), component)
	if err != nil {
		return nil, err
	}
	if out.Manifest.Spec.Components != nil {
		return nil, &violation.Error{Reason: violation.NestedComponents, Component: component}
	}
	out.Manifest.Name = component
	return out, out.check(ctx)
}

// Components lists the components of a package, sorted; none when it isn't made of components.
func Components(files Files) ([]string, error) {
	root, err := parse(files, "")
	if err != nil || root.Manifest.Spec.Components == nil {
		return nil, err
	}
	return componentsOf(files)
}

func componentsOf(files Files) ([]string, error) {
	seen := map[string]bool{}
	for _, name := range files.Paths() {
		rest, ok := strings.CutPrefix(name, components+"/")
		if !ok {
			continue
		}
		component, _, inFolder := strings.Cut(rest, "/")
		switch {
		case strings.HasPrefix(component, "."):
		case !inFolder:
			return nil, &violation.Error{Reason: violation.InvalidFileInComponents, Path: name}
		default:
			seen[component] = true
		}
	}
	out := make([]string, 0, len(seen))
	for name := range seen {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

// parse reads the two files that describe a package.
func parse(files Files, component string) (*Package, error) {
	if len(files) == 0 {
		return nil, &violation.Error{Reason: violation.Empty, Component: component}
	}
	out := &Package{Files: Files{}, Component: component}
	for name, data := range files {
		out.Files[name] = data
	}
	path, data, err := out.take(manifest.File, violation.ManifestDuplicated)
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, &violation.Error{Reason: violation.ManifestNotFound, Component: component}
	}
	if out.Manifest, err = manifest.Parse(path, data); err != nil {
		return nil, in(component, err)
	}
	out.Warnings = append(manifest.Warnings(path, data, out.Manifest), manifest.Doubts(path, out.Manifest)...)
	if path, data, err = out.take(manifest.LockFile, violation.LockDuplicated); err != nil || data == nil {
		return out, err
	}
	if out.Lock, err = manifest.ParseLock(path, data); err != nil {
		return nil, in(component, err)
	}
	out.Warnings = append(append(out.Warnings, manifest.Warnings(path, data, out.Lock)...), manifest.LockDoubts(path, out.Lock)...)
	return out, nil
}

// in says which component a violation is in.
func in(component string, err error) error {
	if v, ok := err.(*violation.Error); ok { //nolint:errorlint // violations are not wrapped
		v.Component = component
	}
	return err
}

// take removes a file that may be there as .yaml or .yml from the files.
func (p *Package) take(name string, duplicated violation.Reason) (path string, data []byte, err error) {
	short := strings.TrimSuffix(name, ".yaml") + ".yml"
	long, isLong := p.Files[name]
	other, isShort := p.Files[short]
	delete(p.Files, name)
	delete(p.Files, short)
	switch {
	case isLong && isShort:
		return "", nil, &violation.Error{Reason: duplicated, Path: name, Component: p.Component, Details: short + " is there, too"}
	case isLong:
		return name, nonNil(long), nil
	case isShort:
		return short, nonNil(other), nil
	}
	return "", nil, nil
}

func nonNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// check validates manifest and lock file.
func (p *Package) check(ctx context.Context) error {
	if errs := manifest.Validate(ctx, p.Manifest); len(errs) > 0 {
		return &violation.Error{Reason: violation.ManifestInvalid, Path: manifest.File, Component: p.Component, Details: fmt.Sprint(errs.ToAggregate())}
	}
	if p.Lock != nil {
		if errs := manifest.ValidateLock(p.Lock); len(errs) > 0 {
			return &violation.Error{Reason: violation.LockInvalid, Path: manifest.LockFile, Component: p.Component, Details: fmt.Sprint(errs.ToAggregate())}
		}
	}
	return nil
}
