package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// What parts take on a disk, in bytes, with a fifth to spare over a whole distribution of two Kubernetes releases: 2.2 GB of programs, 0.9 GB of files. Compiled
// packages take more, in Go's cache; how much can't be known before, because the cache may already have everything.
const (
	archiveBytes    = 150e6 // a system's programs in bin/dist, and its archive
	imageBytes      = 750e6 // an architecture's programs, and images without Kubernetes
	releaseBytes    = 350e6 // those of a Kubernetes release, for an architecture
	compiledBytes   = 15e9  // what a first run of everything adds to Go's cache
	otherPartsBytes = 20e6
)

// needs is about how much the chosen parts take together with the programs that they are made of.
func (d *distribution) needs(chosen []part) int64 {
	var need int64
	for _, p := range chosen {
		switch p.name {
		case "archives":
			need += archiveBytes * int64(len(d.systems))
		case "images":
			need += int64(len(d.architectures)) * (imageBytes + releaseBytes*int64(len(d.releases)))
		default:
			need += otherPartsBytes
		}
	}
	return need
}

// room refuses to begin what a disk has no room for. Programs that are there will be written over, so they count as room; images of before stay until
// the new ones are complete.
func (d *distribution) room(chosen []part) error {
	need := d.needs(chosen)
	for _, n := range sizes(d.root, filepath.Join("bin", "dist")) {
		need -= n
	}
	free, err := free(d.out)
	if err != nil || free >= need { // what can't be told is seen when it is full
		return nil //nolint:nilerr // see above
	}
	return fmt.Errorf("%s has %s free, but the distribution needs about %s (and a first build up to %s more for Go's cache in %s): free some space, choose another folder with -out, or make less with -parts, -architectures or -releases",
		existing(d.out), size(free), size(need), size(compiledBytes), goCache())
}

// advise adds to the error of a disk without room which ones there are, and what can be done.
func (d *distribution) advise(err error) error {
	if !errors.Is(err, unix.ENOSPC) && !strings.Contains(err.Error(), unix.ENOSPC.Error()) {
		return err
	}
	var lines []string
	for _, folder := range []struct{ what, path string }{
		{"the distribution", d.out}, {"programs", filepath.Join(d.root, "bin")}, {"Go's cache (GOCACHE)", goCache()}, {"what the linker works on (GOTMPDIR)", temporary()},
	} {
		if n, err := free(folder.path); err == nil {
			lines = append(lines, fmt.Sprintf("  %s free for %s in %s", size(n), folder.what, folder.path))
		}
	}
	return fmt.Errorf("%w\nA disk is full:\n%s\nFree some space, or set the variable to a folder on another disk, and run the same command again: what is compiled is kept", err, strings.Join(lines, "\n"))
}

// free is how many bytes can be written to a folder, which need not be there yet.
func free(folder string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(existing(folder), &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil
}

// existing is a folder, or the first above it that is there.
func existing(folder string) string {
	for folder != filepath.Dir(folder) {
		if _, err := os.Stat(folder); err == nil {
			break
		}
		folder = filepath.Dir(folder)
	}
	return folder
}

// goCache is where Go keeps what is compiled.
func goCache() string {
	out, err := exec.Command("go", "env", "GOCACHE").Output() //nolint:noctx // reads a file or two
	if err != nil {
		return "its cache"
	}
	return strings.TrimSpace(string(out))
}

// temporary is where the go command and the linker work.
func temporary() string {
	folders := []string{os.Getenv("GOTMPDIR"), os.TempDir()}
	return folders[slices.IndexFunc(folders, func(f string) bool { return f != "" })]
}
