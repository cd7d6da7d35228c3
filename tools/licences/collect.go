package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Module is one that is linked, with what its authors want to be passed on.
type Module struct {
	Path, Version string
	// Licences are identifiers of SPDX, sorted.
	Licences []string
	Texts    []Text // sorted by name
	// Type is that of its address in an inventory, as package URLs have it; empty: a Go module.
	Type string
	// Arch is the architecture of a package of Debian; empty for others.
	Arch string
}

// npm is the type of what browsers run.
const npm = "npm"

// Text is a file with a licence or a notice.
type Text struct {
	Name string // relative to the module
	Data []byte
}

// standardLibrary is what Go's own packages are called in a list of modules.
const standardLibrary = "std"

// passedOn are names of files that go along with a program. Those of licences must be known.
var passedOn = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)

// other are names that look like those of licences, and hold a program, or the licence of texts that aren't linked.
var other = regexp.MustCompile(`(?i)\.(go|sh|py|tmpl|json|ya?ml|docs)$`)

// listed is the part of what "go list -json" says that is looked at.
type listed struct {
	ImportPath string
	Dir        string
	Standard   bool
	Module     *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
}

// found is a module while it is looked for.
type found struct {
	version, dir string
	folders      map[string]bool // of packages that are linked
}

// Collect returns the modules that are linked into programs of the repository at root, sorted by path, Go's standard library and what our own packages
// embed of others among them. The error names every module whose licence is not known or not allowed.
func Collect(ctx context.Context, root string, programs ...Program) ([]Module, error) {
	std, err := standard(ctx)
	if err != nil {
		return nil, err
	}
	all, linked := map[string]*found{standardLibrary + "@" + std.version: std}, map[string]bool{}
	for _, p := range programs {
		for _, platform := range p.Platforms {
			if err := p.list(ctx, root, platform, all, linked); err != nil {
				return nil, err
			}
		}
	}
	var modules []Module
	var errs []error
	for key, f := range all {
		m, err := f.read(strings.SplitN(key, "@", 2)[0])
		modules, errs = append(modules, m), append(errs, err)
	}
	for path, e := range embeddings {
		if !linked[path] {
			continue
		}
		parts, err := e.read(root)
		modules, errs = append(modules, parts...), append(errs, err)
	}
	slices.SortFunc(modules, func(a, b Module) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version)) })
	return modules, errors.Join(errs...)
}

// list asks the go command what p consists of on a platform: modules, and packages by their paths.
func (p Program) list(ctx context.Context, root, platform string, all map[string]*found, linked map[string]bool) error {
	goos, goarch, _ := strings.Cut(platform, "/")
	args := []string{"list", "-deps", "-json=ImportPath,Dir,Standard,Module"}
	if p.ModFile != "" {
		args = append(args, "-modfile", p.ModFile)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, p.Packages...)...)
	cmd.Dir = filepath.Join(root, p.Dir)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("listing what %s consists of in %s: %w: %s", strings.Join(p.Packages, " "), p.Dir, err, strings.TrimSpace(stderr.String()))
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listed
		if err := d.Decode(&pkg); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading what the go command lists: %w", err)
		}
		note(pkg, all)
		linked[pkg.ImportPath] = true
	}
}

// standard is Go's own library, of which every program has a part. All of it has the licence at its root.
func standard(ctx context.Context) (*found, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("asking the go command where its library is: %w", err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return &found{version: version, dir: dir}, nil
}

// note adds the module of a package.
func note(pkg listed, all map[string]*found) {
	m := pkg.Module
	if pkg.Standard || m == nil || m.Main || m.Replace != nil && m.Replace.Version == "" { // of this repository, which has the file LICENSE
		return
	}
	version, dir := m.Version, m.Dir
	if m.Replace != nil {
		version, dir = m.Replace.Version, m.Replace.Dir
	}
	key := m.Path + "@" + version
	if all[key] == nil {
		all[key] = &found{version: version, dir: dir, folders: map[string]bool{}}
	}
	all[key].folders[pkg.Dir] = true
}

// read finds the texts of a module: at its root, and in the folders between that and the packages that are linked.
func (f *found) read(path string) (Module, error) {
	m := Module{Path: path, Version: f.version}
	folders := map[string]bool{f.dir: true}
	for dir := range f.folders {
		for d := dir; d != f.dir && strings.HasPrefix(d, f.dir); d = filepath.Dir(d) {
			folders[d] = true
		}
	}
	for dir := range folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return m, fmt.Errorf("looking for the licence of %s: %w", path, err)
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !passedOn.MatchString(e.Name()) || other.MatchString(e.Name()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return m, fmt.Errorf("reading the licence of %s: %w", path, err)
			}
			name, err := filepath.Rel(f.dir, filepath.Join(dir, e.Name()))
			if err != nil {
				return m, err
			}
			m.Texts = append(m.Texts, Text{Name: filepath.ToSlash(name), Data: data})
		}
	}
	slices.SortFunc(m.Texts, func(a, b Text) int { return cmp.Compare(a.Name, b.Name) })
	var err error
	m.Licences, err = judge(m)
	return m, err
}
