package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
)

// Unmet lists the constraints of a package that don't hold. others is whether another package with the same manifest is in its scope.
func Unmet(m *manifests.PackageManifest, env manifests.PackageEnvironment, others bool) []string {
	var out []string
	for _, c := range m.Spec.Constraints {
		if len(c.Platform) > 0 && !slices.Contains(c.Platform, manifests.Kubernetes) && env.OpenShift == nil {
			out = append(out, "OpenShift platform")
		}
		if c.PlatformVersion != nil {
			if message := versionUnmet(*c.PlatformVersion, env); message != "" {
				out = append(out, message)
			}
		}
		if c.UniqueInScope != nil && others {
			out = append(out, "package has unique constraint set but another package in the same namespace uses the same manifest")
		}
	}
	return out
}

func versionUnmet(c manifests.PackageManifestPlatformVersionConstraint, env manifests.PackageEnvironment) string {
	version := env.Kubernetes.Version
	if c.Name == manifests.OpenShift {
		if env.OpenShift == nil {
			return ""
		}
		version = env.OpenShift.Version
	}
	met, err := Satisfies(version, c.Range)
	if err != nil || !met {
		return fmt.Sprintf("%s %s does not meet constraint %s", c.Name, version, c.Range)
	}
	return ""
}

// Satisfies tells whether a version is in a range. A leading v, and what vendors add behind the release, don't count.
func Satisfies(version, constraint string) (bool, error) {
	want, err := semver.NewConstraint(constraint)
	if err != nil {
		return false, fmt.Errorf("range %q: %w", constraint, err)
	}
	got, err := semver.NewVersion(strings.TrimPrefix(strings.TrimSpace(version), "v"))
	if err != nil {
		return false, fmt.Errorf("version %q: %w", version, err)
	}
	if want.Check(got) {
		return true, nil
	}
	release, err := got.SetPrerelease("")
	if err != nil {
		return false, fmt.Errorf("version %q: %w", version, err)
	}
	return want.Check(&release), nil
}

// UsesUniqueness tells whether a package allows only one installation.
func UsesUniqueness(m *manifests.PackageManifest) bool {
	return slices.ContainsFunc(m.Spec.Constraints, func(c manifests.PackageManifestConstraint) bool { return c.UniqueInScope != nil })
}
