// Package version says which build this is: a semantic version, and the commit that it was made from.
//
// The semantic version is that of the file VERSION beside this one: "1.2.3" in the commit that is tagged v1.2.3, "1.3.0-dev" from the next
// one on. It is the same however a program was built. The commit is, in this order, what the linker set (make, hypershift local up),
// what an archive of git says, or what the go command knows (go build and go run in a checkout, go install of a module).
package version

import (
	_ "embed"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// commit is set by the linker.
var commit string

//go:embed VERSION
var semver string

// archive is "$Format:%H$", or the commit in an archive that git made.
//
//go:embed ARCHIVE
var archive string

// Unknown is the commit of a program that was built from sources that know of none.
const Unknown = "unknown"

// ServerKey is the key of ConfigMap supported-versions that holds the operator's semantic version, beside its commit and the releases
// that it can host, which have keys of old.
const ServerKey = "server-semantic-version"

// commitLength is how much of a commit is shown: as much as `git rev-parse --short=12` does.
const commitLength = 12

// Build is which build a program is.
type Build struct {
	// Version is a semantic version without "v": "1.2.3", "1.3.0-dev".
	Version string `json:"version"`
	// Commit is abbreviated to 12 digits, with "-dirty" behind it when the go command saw changes that weren't committed; Unknown where
	// nothing tells it.
	Commit string `json:"commit"`
	// Go is the version of the compiler: "go1.26.0".
	Go string `json:"go"`
	// Platform is what it runs on: "linux/amd64".
	Platform string `json:"platform"`
}

// This is the build of the running program.
func This() Build {
	return Build{Version: Semver(), Commit: Commit(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// String is for people: "v1.2.3, commit 0123456789ab (go1.26.0, linux/amd64)".
func (b Build) String() string {
	return "v" + b.Version + ", commit " + b.Commit + " (" + b.Go + ", " + b.Platform + ")"
}

// Semver is the semantic version of this build, without "v".
func Semver() string { return strings.TrimSpace(semver) }

// Commit is the abbreviated git commit that the program was built from, Unknown when nothing tells it.
func Commit() string {
	info, _ := debug.ReadBuildInfo()
	return commitFrom(commit, archive, info)
}

// pseudoVersion is a version of a module that has no tag, such as v0.0.0-20260102030405-0123456789ab; its end is the commit.
var pseudoVersion = regexp.MustCompile(`[.-]\d{14}-([0-9a-f]{12})(\+\S+)?$`)

// commitFrom is the first of the sources that knows.
func commitFrom(linked, archive string, info *debug.BuildInfo) string {
	if linked != "" && linked != Unknown {
		return linked
	}
	if archive = strings.TrimSpace(archive); len(archive) > commitLength && !strings.HasPrefix(archive, "$") {
		return archive[:commitLength]
	}
	if info == nil {
		return Unknown
	}
	found, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= commitLength:
			found = s.Value[:commitLength]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if found != "" {
		return found + dirty
	}
	if m := pseudoVersion.FindStringSubmatch(info.Main.Version); m != nil {
		return m[1]
	}
	return Unknown
}
