package release

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Version is a release version: a semantic version of Kubernetes (major 1) or of OpenShift (major 4 and later).
type Version struct{ v *version.Version }

// ParseVersion reads a semantic version, with or without a leading v.
func ParseVersion(s string) (Version, error) {
	if len(s) > maxNameLength {
		return Version{}, fmt.Errorf("parsing version: %d characters are too many", len(s))
	}
	v, err := version.ParseSemantic(strings.TrimPrefix(s, "v"))
	if err != nil {
		return Version{}, fmt.Errorf("parsing version %q: write it as major.minor.patch", s)
	}
	return Version{v}, nil
}

// Kubernetes tells that the version is one of a plain Kubernetes release.
func (v Version) Kubernetes() bool { return v.v.Major() == 1 }

// IsPayload tells that a version is one of an OpenShift payload, and IsKubernetes that it is one of a plain Kubernetes release. What is no version is neither.
func IsPayload(version string) bool {
	v, err := ParseVersion(version)
	return err == nil && !v.Kubernetes()
}

// IsKubernetes is described at IsPayload.
func IsKubernetes(version string) bool {
	v, err := ParseVersion(version)
	return err == nil && v.Kubernetes()
}

// String is the version without a leading v.
func (v Version) String() string { return v.v.String() }

// withoutBuild is the version without build metadata ("+…").
func (v Version) withoutBuild() string {
	text, _, _ := strings.Cut(v.v.String(), "+")
	return text
}

// MinorString is "major.minor".
func (v Version) MinorString() string { return fmt.Sprintf("%d.%d", v.v.Major(), v.v.Minor()) }

// lastOpenShift4Minor is the last minor of OpenShift 4; 5.x counts as 4.(23+x) in all arithmetic.
const lastOpenShift4Minor = 23

// ordinal numbers the minors of one flavour in a row, so that a difference of 1 is the next minor across a major, too.
func (v Version) ordinal() int {
	minor := int(min(v.v.Minor(), 1<<20)) // versions come from images; keep the arithmetic far from overflow
	if v.v.Major() == 5 {
		return lastOpenShift4Minor + minor
	}
	return minor
}

// SameMinor tells that only the patch may differ.
func (v Version) SameMinor(o Version) bool { return v.MinorString() == o.MinorString() }

// SameMinor tells whether two version strings are of one major.minor; false when one of them does not parse.
func SameMinor(a, b string) bool {
	va, errA := ParseVersion(a)
	vb, errB := ParseVersion(b)
	return errA == nil && errB == nil && va.SameMinor(vb)
}
