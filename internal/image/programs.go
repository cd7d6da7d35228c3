package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// machines are the processors that programs of images are for, by the architecture in the words of Go.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// maxLinks bounds how many symbolic links lead from a name to a file.
const maxLinks = 16

// contents are what the layers of an image have.
type contents struct {
	machine elf.Machine
	files   map[string]string   // by path: the target of a symbolic link; empty for everything else
	needs   map[string][]string // by program: its interpreter, as a path, and its libraries, as names
}

// CheckPrograms refuses an image with programs that cannot start in it: of another architecture than it says it is for, or whose interpreter or
// libraries it doesn't have. On a node such a container ends with "exec format error", or with "no such file or directory" about a file that is there.
func CheckPrograms(img v1.Image) error {
	config, err := img.ConfigFile()
	if err != nil {
		return fmt.Errorf("reading the image's config: %w", err)
	}
	c := contents{machine: machines[config.Architecture], files: map[string]string{}, needs: map[string][]string{}}
	if c.machine == elf.EM_NONE {
		return fmt.Errorf("images for architecture %q are not made here; use some of %s", config.Architecture, strings.Join(slices.Sorted(maps.Keys(machines)), ", "))
	}
	layers, err := img.Layers()
	if err != nil {
		return fmt.Errorf("reading the image's layers: %w", err)
	}
	var errs []error
	for _, l := range layers {
		errs = append(errs, c.read(l))
	}
	return errors.Join(append(errs, c.missing()...)...)
}

// read adds a layer. Layers of ours remove nothing of those below.
func (c contents) read(l v1.Layer) error {
	r, err := l.Uncompressed()
	if err != nil {
		return fmt.Errorf("reading a layer: %w", err)
	}
	defer r.Close()
	var errs []error
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return errors.Join(errs...)
		}
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("reading a layer: %w", err))...)
		}
		name := path.Clean("/" + h.Name)
		c.files[name] = h.Linkname
		delete(c.needs, name) // what the layer below has there
		if h.Typeflag != tar.TypeReg {
			continue
		}
		needs, err := c.program(tr, h.Size)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		} else if len(needs) > 0 {
			c.needs[name] = needs
		}
	}
}

// program returns what an ELF file needs to be run: its interpreter, as a path, and its libraries, as names. Other files need nothing.
func (c contents) program(r io.Reader, size int64) ([]string, error) {
	start := make([]byte, min(size, int64(len(elf.ELFMAG))))
	if _, err := io.ReadFull(r, start); err != nil || string(start) != elf.ELFMAG {
		return nil, err
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data[copy(data, start):]); err != nil {
		return nil, err
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if f.Machine != c.machine {
		return nil, fmt.Errorf("the program is for %s, and the image for %s", f.Machine, c.machine)
	}
	var needs []string
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, err := io.ReadAll(p.Open())
			if err != nil {
				return nil, fmt.Errorf("reading the name of its interpreter: %w", err)
			}
			needs = append(needs, strings.TrimRight(string(name), "\x00"))
		}
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("reading the names of its libraries: %w", err)
	}
	return append(needs, libraries...), nil
}

// missing are what programs need and the image doesn't have.
func (c contents) missing() []error {
	libraries := map[string]bool{}
	for name := range c.files {
		if strings.Contains(path.Dir(name)+"/", "/lib") && c.leads(name) {
			libraries[path.Base(name)] = true
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.needs)) {
		for _, need := range c.needs[name] {
			if strings.HasPrefix(need, "/") && !c.leads(need) || !strings.HasPrefix(need, "/") && !libraries[need] {
				errs = append(errs, fmt.Errorf("%s needs %s, which the image doesn't have", name, need))
			}
		}
	}
	return errs
}

// leads tells whether a path is that of a file or folder, behind links.
func (c contents) leads(name string) bool {
	for range maxLinks {
		at, linked := "/", false
		for rest := strings.TrimPrefix(name, "/"); rest != ""; {
			var part string
			part, rest, _ = strings.Cut(rest, "/")
			target, there := c.files[path.Join(at, part)]
			if !there {
				return false
			}
			if target != "" {
				if !path.IsAbs(target) {
					target = path.Join(at, target)
				}
				name, linked = path.Join(target, rest), true
				break
			}
			at = path.Join(at, part)
		}
		if !linked {
			return true
		}
	}
	return false
}
