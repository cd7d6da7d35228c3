package load

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/packages/author/violation"
)

// Files are the files of a package by path, with slashes, relative to the folder of the package.
type Files map[string][]byte

// Limits of a package. Known packages have some hundred files and less than 1 MiB; definitions of large APIs make up most of it.
const (
	MaxFiles = 5000
	MaxFile  = 4 << 20
	MaxTotal = 32 << 20
	MaxPath  = 512
)

// Paths are the paths, sorted so that the files of a folder come before those of folders whose names are longer.
func (f Files) Paths() []string {
	out := make([]string, 0, len(f))
	for p := range f {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b string) int {
		// "/" is made the lowest character.
		return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
	return out
}

// Add adds a file within the limits. Errors are violations.
func (f Files) Add(name string, data []byte, total *int64) error {
	switch {
	case len(name) > MaxPath:
		return &violation.Error{Reason: violation.TooLarge, Path: clip.To(name, 64) + "…", Details: fmt.Sprintf("its path has more than %d bytes", MaxPath)}
	case len(data) > MaxFile:
		return &violation.Error{Reason: violation.TooLarge, Path: name, Details: fmt.Sprintf("more than %d bytes", MaxFile)}
	}
	before, exists := f[name]
	if !exists && len(f) >= MaxFiles {
		return &violation.Error{Reason: violation.TooLarge, Details: fmt.Sprintf("more than %d files", MaxFiles)}
	}
	if *total += int64(len(data) - len(before)); *total > MaxTotal {
		return &violation.Error{Reason: violation.TooLarge, Path: name, Details: fmt.Sprintf("more than %d bytes in all files", MaxTotal)}
	}
	f[name] = data
	return nil
}

// Hidden tells whether a part of a path starts with a dot; such files are no part of a package.
func Hidden(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") {
			return true
		}
	}
	return false
}

// Folder reads the files of a package's source folder. What starts with a dot, symbolic links and special files are left out.
func Folder(dir string) (Files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	return folder(root.FS())
}

func folder(source fs.FS) (Files, error) {
	files, total := Files{}, int64(0)
	err := fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		data, err := readFile(source, name)
		if err != nil {
			return err
		}
		return files.Add(filepath.ToSlash(name), data, &total)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the package's folder: %w", err)
	}
	return files, nil
}

func readFile(source fs.FS, name string) ([]byte, error) {
	file, err := source.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	return io.ReadAll(io.LimitReader(file, MaxFile+1))
}

// Below are the files of a folder, with paths relative to it.
func (f Files) Below(dir string) Files {
	out := Files{}
	for name, data := range f {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			out[rest] = data
		}
	}
	return out
}

// isHelper tells whether a file never yields objects itself.
func isHelper(name string) bool { return strings.HasPrefix(path.Base(name), "_") }

// IsYAML tells whether a file holds objects.
func IsYAML(name string) bool {
	ext := path.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && !isHelper(name)
}

// TemplateExt ends the names of templates. What they give is a file without it.
const TemplateExt = ".gotmpl"

// IsTemplate tells whether a file is a template.
func IsTemplate(name string) bool { return strings.HasSuffix(name, TemplateExt) }
