package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"hcp.internal/platform/internal/image/bundle"
	"hcp.internal/platform/internal/local/builds"
)

// found are the files and folders of a part that are there, relative to the distribution.
func (p part) found(out string) []string {
	entries, err := os.ReadDir(out)
	if err != nil {
		return nil // nothing was made yet
	}
	var names []string
	for _, e := range entries {
		for _, pattern := range p.files {
			if ok, _ := filepath.Match(pattern, e.Name()); ok { // patterns are ours
				names = append(names, e.Name())
			}
		}
	}
	return names
}

// listed are the files that checksums are for, sorted, relative to the distribution, with slashes.
func listed(out string) []string {
	var names []string
	for _, p := range parts {
		for _, f := range p.found(out) {
			for name := range sizes(out, f) {
				if !strings.HasPrefix(name, sums) && !strings.HasPrefix(name, "images/blobs/") {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// sizes are the sizes of a file, or of the files of a folder, by their names relative to the distribution.
func sizes(out, name string) map[string]int64 {
	all := map[string]int64{}
	_ = filepath.WalkDir(filepath.Join(out, name), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // what isn't there has no size
		}
		if info, err := e.Info(); err == nil {
			relative, _ := filepath.Rel(out, path)
			all[filepath.ToSlash(relative)] = info.Size()
		}
		return nil
	})
	return all
}

// summarize says what is there: every part with its size, and how long it took or that it is from an earlier run.
func (d *distribution) summarize(out io.Writer, chosen []part) error {
	commit := builds.Commit(d.root)
	if commit == "" {
		commit = "unknown"
	}
	fmt.Fprintf(out, "\nVersion %s of commit %s, in %s:\n\n", d.version, commit, d.out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  PART\tFILES\tSIZE\tTOOK\tWHAT")
	var total int64
	missing := false
	for _, p := range parts {
		found := p.found(d.out)
		if len(found) == 0 {
			missing = true
			fmt.Fprintf(w, "  %s\t-\t-\t-\tnot there\n", p.name)
			continue
		}
		var bytes int64
		files := 0
		for _, f := range found {
			for _, n := range sizes(d.out, f) {
				files, bytes = files+1, bytes+n
			}
		}
		took := "earlier"
		if made, ok := d.took[p.name]; ok {
			took = made.Round(time.Second).String()
		}
		total += bytes
		fmt.Fprintf(w, "  %s\t%d\t%s\t%s\t%s\n", p.name, files, size(bytes), took, d.what(p, found))
	}
	fmt.Fprintf(w, "  all\t\t%s\n", size(total))
	if err := w.Flush(); err != nil {
		return err
	}
	for _, note := range d.notes(chosen, missing) {
		fmt.Fprintf(out, "\n%s\n", note)
	}
	return nil
}

// what names the content of a part.
func (d *distribution) what(p part, found []string) string {
	if p.name == "images" {
		if text, err := describe(filepath.Join(d.out, "images")); err == nil {
			return text
		}
	}
	if len(found) > 2 {
		return found[0] + " … " + found[len(found)-1]
	}
	return strings.Join(found, ", ")
}

// describe says of a bundle which releases it has, and for which platforms.
func describe(dir string) (string, error) {
	b, err := bundle.Open(dir)
	if err != nil {
		return "", err
	}
	defer b.Close()
	var releases, platforms []string
	for _, e := range b.Entries {
		if e.Kind == bundle.Release {
			releases = append(releases, e.Release)
			platforms = append(platforms, e.Platforms...)
		}
	}
	slices.Sort(releases)
	slices.Sort(platforms)
	return fmt.Sprintf("%d entries; Kubernetes %s for %s", len(b.Entries), strings.Join(releases, ", "), strings.Join(slices.Compact(platforms), ", ")), nil
}

// notes are what somebody should know who has the distribution now.
func (d *distribution) notes(chosen []part, missing bool) []string {
	made := func(name string) bool {
		return slices.ContainsFunc(chosen, func(p part) bool { return p.name == name })
	}
	var notes []string
	if !made("checksums") {
		notes = append(notes, sums+" was removed because parts have changed. Write it again with: make dist DIST_PARTS=checksums")
	}
	if made("krew") && d.url == placeholderURL+d.version {
		notes = append(notes, "The krew manifests point to "+d.url+", which is a placeholder. Set the address of the archives with: make dist DIST_FLAGS='-url ADDRESS'")
	}
	if made("archives") && !made("krew") && !missing {
		notes = append(notes, "The krew manifests belong to the archives of an earlier run. Write them again with: make dist DIST_PARTS=krew,checksums")
	}
	return append(notes, "Next: check it with make dist-check, and install it as docs/install.md describes.")
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%d MB", n/1e6)
	}
	return fmt.Sprintf("%d kB", (n+999)/1000)
}
