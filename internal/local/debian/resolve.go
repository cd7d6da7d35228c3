package debian

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// leftOut are packages that others depend on for being installed or for documentation, and that programs run without.
var leftOut = []string{
	"base-files", "cdebconf", "debconf", "debianutils", "dpkg", "gcc-12-base", "init-system-helpers", "install-info", "libaudit-common",
	"libc-bin", "libpam-runtime", "lsb-base", "perl-base", "readline-common", "sensible-utils", "sysvinit-utils", "tar",
}

// maxPackages bounds a closure; a hundred is far more than a node needs.
const maxPackages = 200

var packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,100}$`)

// closure returns the packages and everything that they need to run, sorted, by an apt that may be for another architecture.
func closure(ctx context.Context, packages []string, apt func(ctx context.Context, program string, args ...string) *exec.Cmd) ([]string, error) {
	have := map[string]bool{}
	next := packages
	for len(next) > 0 {
		for _, p := range next {
			if !packageName.MatchString(p) {
				return nil, fmt.Errorf("%q is no name of a package", p)
			}
			have[p] = true
		}
		if len(have) > maxPackages {
			return nil, fmt.Errorf("more than %d packages are needed, which can't be right", maxPackages)
		}
		args := append([]string{"depends", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances"}, next...)
		cmd := apt(ctx, "apt-cache", args...)
		cmd.Env = append(cmd.Environ(), "LC_ALL=C")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("asking apt-cache what %s depend on: %w", strings.Join(next, ", "), withStderr(err))
		}
		next = nil
		for _, p := range parseDepends(string(out)) {
			if !have[p] && !slices.Contains(leftOut, p) && !slices.Contains(next, p) {
				next = append(next, p)
			}
		}
	}
	all := make([]string, 0, len(have))
	for p := range have {
		all = append(all, p)
	}
	slices.Sort(all)
	return all, nil
}

// parseDepends reads what "apt-cache depends" prints. Of alternatives it takes the first real package; what only virtual packages
// fulfil is left to who names the packages.
func parseDepends(out string) []string {
	var found []string
	taken := false // of the present group of alternatives
	for line := range strings.Lines(out) {
		trimmed := strings.TrimSpace(line)
		more := strings.HasPrefix(trimmed, "|")
		kind, name, ok := strings.Cut(strings.TrimPrefix(trimmed, "|"), ": ")
		if !ok || (kind != "Depends" && kind != "PreDepends") {
			continue // the package itself, or one that provides a virtual package
		}
		name, _, _ = strings.Cut(name, ":") // an architecture
		if !taken && packageName.MatchString(name) {
			found = append(found, name)
			taken = true
		}
		if !more {
			taken = false
		}
	}
	return found
}
