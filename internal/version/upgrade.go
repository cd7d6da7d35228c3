package version

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// CompareUpgrade judges whether next may be installed where installed is; both are semantic versions without "v". One minor version at a time, either
// way, and from any minor version of a major one to the first of the following. An empty installed is of before versions were noted, and may be replaced.
func CompareUpgrade(installed, next string) Skew {
	if installed == "" {
		return Skew{Undetermined, "the installed version isn't known: it is older than v0.1.0, or it isn't installed"}
	}
	from, errFrom := version.ParseSemantic(installed)
	to, errTo := version.ParseSemantic(next)
	switch {
	case errFrom != nil:
		return Skew{Undetermined, fmt.Sprintf("the installed version %.60q is no semantic version", installed)}
	case errTo != nil:
		return Skew{Undetermined, fmt.Sprintf("the version %.60q is no semantic version", next)}
	case from.Major() == to.Major() && distance(from.Minor(), to.Minor()) <= maxMinorSkew, to.Major() == from.Major()+1 && to.Minor() == 0:
		return Skew{Supported, fmt.Sprintf("v%s may be replaced by v%s", from, to)}
	case to.Major() > from.Major():
		return Skew{Unsupported, fmt.Sprintf("v%s is installed: upgrade to the last minor version of v%d, then to v%d.0, before v%s", from, from.Major(), from.Major()+1, to)}
	case to.LessThan(from):
		return Skew{Unsupported, fmt.Sprintf("v%s is installed, and v%s is more than one minor version older: go back one minor version after the other", from, to)}
	}
	return Skew{Unsupported, fmt.Sprintf("v%s is installed, and v%s is more than one minor version newer: install v%d.%d first", from, to, from.Major(), from.Minor()+1)}
}

// CompareControlPlane judges the version of a control-plane-operator beside that of the operator that deploys it: the same minor version, or the one before,
// because releases of before keep theirs when the operator is upgraded. Both are semantic versions without "v"; empty ones aren't known.
func CompareControlPlane(operator, controlPlane string) Skew {
	o, errOperator := version.ParseSemantic(operator)
	c, errControlPlane := version.ParseSemantic(controlPlane)
	switch {
	case errOperator != nil:
		return Skew{Undetermined, "the operator doesn't say its version"}
	case errControlPlane != nil:
		return Skew{Undetermined, "its image doesn't say its version"}
	case o.Major() == c.Major() && o.Minor() == c.Minor():
		return Skew{Supported, "it has the operator's minor version"}
	case o.Major() == c.Major() && c.Minor()+maxMinorSkew >= o.Minor() && c.Minor() < o.Minor():
		return Skew{Supported, "it is one minor version behind the operator, which is supported"}
	case o.LessThan(c):
		return Skew{Unsupported, fmt.Sprintf("a control-plane-operator is v%s, newer than the operator, v%s: upgrade the operator", c, o)}
	}
	return Skew{Unsupported, fmt.Sprintf("a control-plane-operator is v%s, and the operator v%s: move its hosted cluster to a release of v%d.%d", c, o, o.Major(), o.Minor())}
}
