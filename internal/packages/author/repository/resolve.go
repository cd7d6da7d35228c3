package repository

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
)

// Resolve finds the packages that a package depends on: of each the highest version that satisfies all that is asked of it, and that runs
// wherever the package itself does.
func Resolve(m *manifests.PackageManifest, repositories []*Repository) ([]manifests.PackageManifestLockDependency, error) {
	ranges := map[string][]string{}
	for _, d := range m.Spec.Dependencies {
		if d.Image != nil && d.Image.Range != "" {
			ranges[d.Image.Package] = append(ranges[d.Image.Package], d.Image.Range)
		}
	}
	var out []manifests.PackageManifestLockDependency
	var errs []error
	for _, d := range m.Spec.Dependencies {
		if d.Image == nil {
			continue
		}
		c, err := choose(m, d.Image.Package, ranges[d.Image.Package], repositories)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		digest := c.entry.Digest
		if !strings.Contains(digest, ":") {
			digest = "sha256:" + digest
		}
		out = append(out, manifests.PackageManifestLockDependency{Name: d.Image.Name, Image: c.entry.Image, Digest: digest, Version: c.text})
	}
	return out, errors.Join(errs...)
}

func choose(m *manifests.PackageManifest, fqdn string, ranges []string, repositories []*Repository) (candidate, error) {
	all := sorted(repositories, fqdn)
	all = slices.DeleteFunc(all, func(c candidate) bool { return !supports(c.entry.Constraints, m.Spec.Constraints) })
	if len(all) == 0 {
		return candidate{}, fmt.Errorf("%s requires package %s which has no candidates", m.Name, fqdn)
	}
	for _, c := range all {
		if satisfies(c.version, ranges) {
			return c, nil
		}
	}
	var versions []string
	for _, c := range all {
		versions = append(versions, c.text)
	}
	return candidate{}, fmt.Errorf("%s requires package %s with version constraint %s but no available version out of %v satisfies this",
		m.Name, fqdn, strings.Join(ranges, ", "), versions)
}

func satisfies(v *semver.Version, ranges []string) bool {
	for _, text := range ranges {
		constraint, err := semver.NewConstraint(text)
		if err != nil || !constraint.Check(v) {
			return false
		}
	}
	return true
}

// supports tells whether a package with constraints runs wherever one with other constraints does.
func supports(candidate, wanted []manifests.PackageManifestConstraint) bool {
	platforms := func(list []manifests.PackageManifestConstraint) []manifests.PlatformName {
		var out []manifests.PlatformName
		for _, c := range list {
			out = append(out, c.Platform...)
		}
		return out
	}
	if offered := platforms(candidate); len(offered) > 0 {
		for _, p := range platforms(wanted) {
			if !slices.Contains(offered, p) {
				return false
			}
		}
	}
	for _, c := range candidate {
		if c.PlatformVersion == nil {
			continue
		}
		for _, w := range wanted {
			if w.PlatformVersion != nil && w.PlatformVersion.Name == c.PlatformVersion.Name && !covers(c.PlatformVersion.Range, w.PlatformVersion.Range) {
				return false
			}
		}
	}
	return true
}

// covers tells whether a range has all versions of another, judged by the minor versions that platforms have had and will have for long.
func covers(outer, inner string) bool {
	x, errX := semver.NewConstraint(outer)
	y, errY := semver.NewConstraint(inner)
	if errX != nil || errY != nil {
		return false
	}
	const majors, minors, patches = 6, 60, 999
	for major := range uint64(majors) {
		for minor := range uint64(minors) {
			for _, patch := range []uint64{0, patches} {
				if v := semver.New(major, minor, patch, "", ""); y.Check(v) && !x.Check(v) {
					return false
				}
			}
		}
	}
	return true
}
