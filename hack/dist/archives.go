package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hcp.internal/platform/internal/cli/kubectlpackage"
	"hcp.internal/platform/internal/local/builds"
)

// system is one that the command line runs on.
type system struct{ os, arch string }

var systems = []system{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}

// chooseSystems looks systems up; none named means all.
func chooseSystems(list string) ([]system, error) {
	if list == "" {
		return systems, nil
	}
	var chosen []system
	for name := range strings.SplitSeq(list, ",") {
		goos, goarch, _ := strings.Cut(name, "/")
		if s := (system{goos, goarch}); slices.Contains(systems, s) {
			chosen = append(chosen, s)
			continue
		}
		var known []string
		for _, s := range systems {
			known = append(known, s.os+"/"+s.arch)
		}
		return nil, fmt.Errorf("-systems: unknown system %q: use some of %s", name, strings.Join(known, ", "))
	}
	return chosen, nil
}

// exe is what programs end with.
func (s system) exe() string {
	if s.os == "windows" {
		return ".exe"
	}
	return ""
}

func (s system) suffix() string {
	if s.os == "windows" {
		return ".zip"
	}
	return ".tar.gz"
}

// archive is the name of a system's archive.
func (d *distribution) archive(s system) string {
	return "hypershift-" + d.version + "-" + s.os + "-" + s.arch + s.suffix()
}

// buildFolder is where programs of a system are built, relative to the root.
func buildFolder(s system) string { return "bin/dist/" + s.os + "_" + s.arch + "/" }

// cli is the command line for a system.
func cli(root string, s system) builds.Target {
	t := builds.Programs(root)
	t.Name, t.Packages, t.Out, t.OS, t.Arch = "hypershift for "+s.os+"/"+s.arch, []string{"./cmd/hypershift"}, buildFolder(s)+"hypershift"+s.exe(), s.os, s.arch
	return t
}

// plugin is the program that has the names of plugins of kubectl.
func plugin(root string, s system) builds.Target {
	t := cli(root, s)
	t.Name, t.Packages, t.Out = "plugins of kubectl for "+s.os+"/"+s.arch, []string{"./cmd/kubectl-plugin"}, buildFolder(s)+"kubectl-plugin"+s.exe()
	t.LDFlags, t.Typical = "-s -w", 5*time.Second // of no commit
	return t
}

// packed is a file of an archive.
type packed struct {
	name   string
	mode   int64
	data   []byte
	source string // instead of data
}

func (p packed) open() (io.ReadCloser, int64, error) {
	if p.source == "" {
		return io.NopCloser(bytes.NewReader(p.data)), int64(len(p.data)), nil
	}
	f, err := os.Open(p.source)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // was only read
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// cliTargets are the programs of all archives.
func (d *distribution) cliTargets() []builds.Target {
	var list []builds.Target
	for _, s := range d.systems {
		list = append(list, cli(d.root, s), plugin(d.root, s))
	}
	return list
}

// makeArchives builds all programs before it touches the archives of before, which are replaced, those of other versions and systems too.
func (d *distribution) makeArchives(ctx context.Context, say func(string, ...any)) error {
	for _, t := range d.cliTargets() {
		if err := d.build(ctx, say, t); err != nil {
			return err
		}
	}
	say("collecting licences")
	legal, err := d.legal(ctx, "cli")
	if err != nil {
		return err
	}
	if err := d.remove("archives"); err != nil {
		return err
	}
	for i, s := range d.systems {
		say("packing %s, %d of %d", d.archive(s), i+1, len(d.systems))
		if err := d.pack(d.archive(s), s, append(slices.Clone(legal), d.programs(s, cli(d.root, s), plugin(d.root, s))...)); err != nil {
			return fmt.Errorf("packing %s: %w", d.archive(s), err)
		}
	}
	return nil
}

// programs are those of an archive. kubectl finds its plugins by their names, and hypershift answers to each. They are small programs that run it instead of
// links, because zips have none, and krew unpacks no archive that has one.
func (d *distribution) programs(s system, cli, launcher builds.Target) []packed {
	files := []packed{{name: "hypershift" + s.exe(), mode: 0o755, source: filepath.Join(d.root, cli.Out)}}
	for _, name := range []string{"kubectl-hypershift", "kubectl-package", kubectlpackage.CompletionProgram} {
		files = append(files, packed{name: name + s.exe(), mode: 0o755, source: filepath.Join(d.root, launcher.Out)})
	}
	return files
}

// legal are the texts that go with what is handed out.
func (d *distribution) legal(ctx context.Context, programs ...string) ([]packed, error) {
	third, err := d.licences(ctx, programs...)
	if err != nil {
		return nil, err
	}
	files := []packed{{name: "THIRD_PARTY_LICENSES", mode: 0o644, data: third}}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		files = append(files, packed{name: name, mode: 0o644, source: filepath.Join(d.root, name)})
	}
	return files, nil
}

func (d *distribution) pack(name string, s system, files []packed) error {
	slices.SortFunc(files, func(a, b packed) int { return strings.Compare(a.name, b.name) })
	out, err := os.Create(filepath.Join(d.out, name))
	if err != nil {
		return err
	}
	if s.os == "windows" {
		err = packZip(out, files, d.created)
	} else {
		err = packTar(out, files, d.created)
	}
	if closing := out.Close(); err == nil {
		err = closing
	}
	return err
}

// packTar writes a tar.gz. The same files give the same bytes.
func packTar(out io.Writer, files []packed, created time.Time) error {
	z := gzip.NewWriter(out) // without name and time
	w := tar.NewWriter(z)
	for _, f := range files {
		r, size, err := f.open()
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: size, ModTime: created, Format: tar.FormatPAX}
		if err = w.WriteHeader(h); err == nil {
			_, err = io.Copy(w, r)
		}
		_ = r.Close() // was only read
		if err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return z.Close()
}

func packZip(out io.Writer, files []packed, created time.Time) error {
	w := zip.NewWriter(out)
	for _, f := range files {
		r, _, err := f.open()
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: created}
		h.SetMode(os.FileMode(f.mode))
		entry, err := w.CreateHeader(h)
		if err == nil {
			_, err = io.Copy(entry, r)
		}
		_ = r.Close() // was only read
		if err != nil {
			return err
		}
	}
	return w.Close()
}
