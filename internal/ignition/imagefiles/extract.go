package imagefiles

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hcp.internal/platform/internal/oci/layers"
)

// Names by which a layer says that something of those below it is gone.
const (
	whiteoutPrefix = ".wh."
	opaqueName     = ".wh..wh..opq"
)

// extraction is a pass over the layers of an image, from the uppermost down: what an upper one has, or has removed, hides what is below.
type extraction struct {
	root   *os.Root
	wants  []Want
	limits Limits

	written int64
	files   int
	done    map[string]bool // paths that were written
	hidden  map[string]bool // paths that are gone, with all below them
	// found are the wants of which there is something.
	found map[string]bool
}

// extract writes the files that are wanted of an image into a folder.
func extract(ctx context.Context, img v1.Image, dir string, wants []Want, limits Limits) error {
	manifest, err := img.Manifest()
	if err != nil {
		return err
	}
	all, err := img.Layers()
	if err != nil {
		return err
	}
	if len(all) > limits.Layers || len(all) != len(manifest.Layers) {
		return fmt.Errorf("%w: it has %d layers, at most %d are read", ErrHostile, len(all), limits.Layers)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening a folder: %w", err)
	}
	defer func() { _ = root.Close() }() // it was not written to
	x := &extraction{root: root, wants: wants, limits: limits, done: map[string]bool{}, hidden: map[string]bool{}, found: map[string]bool{}}
	budget := layers.Budget{Compressed: limits.Compressed, Unpacked: limits.Unpacked, Entries: limits.Entries}
	for i := len(all) - 1; i >= 0; i-- {
		if err := budget.Admit(manifest.Layers[i]); err != nil {
			return fmt.Errorf("%w: %w", ErrHostile, err)
		}
		if err := x.layer(ctx, all[i], &budget); err != nil {
			return err
		}
		if x.complete() {
			break
		}
	}
	for _, w := range wants {
		if !w.Optional && !x.found[w.Path] {
			return fmt.Errorf("%w: it has no /%s", ErrMissing, w.Path)
		}
	}
	return nil
}

// complete tells that no layer below can add anything: only single files are wanted, and all are there or known to be gone.
func (x *extraction) complete() bool {
	for _, w := range x.wants {
		if !x.done[w.Path] && !x.gone(w.Path) {
			return false
		}
	}
	return true
}

func (x *extraction) layer(ctx context.Context, layer v1.Layer, budget *layers.Budget) error {
	var gone []string            // for the layers below, not for this one
	here := map[string]bool{}    // written in this layer
	links := map[string]string{} // hard links to files of this layer
	err := budget.Walk(ctx, layer, func(h *tar.Header, content io.Reader) (bool, error) {
		at := clean(h.Name)
		base := path.Base(at)
		switch {
		case base == opaqueName:
			gone = append(gone, path.Dir(at))
			return false, nil
		case strings.HasPrefix(base, whiteoutPrefix):
			gone = append(gone, path.Join(path.Dir(at), strings.TrimPrefix(base, whiteoutPrefix)))
			return false, nil
		}
		want, ok := x.want(at)
		if !ok || h.Typeflag == tar.TypeDir || !here[at] && x.done[at] || x.gone(at) {
			return false, nil
		}
		switch h.Typeflag {
		case tar.TypeReg:
			x.found[want], here[at] = true, true
			return false, x.write(at, h, content)
		case tar.TypeLink:
			links[at] = clean(h.Linkname)
			return false, nil
		default:
			return false, fmt.Errorf("%w: /%s is neither a file nor a folder", ErrHostile, at)
		}
	})
	switch {
	case errors.Is(err, layers.ErrUnpacked), errors.Is(err, layers.ErrEntries):
		return fmt.Errorf("%w: %w", ErrHostile, err)
	case err != nil:
		return err
	}
	for at, to := range links {
		if !here[to] {
			return fmt.Errorf("%w: /%s is a link to /%s, which is not among the files that are wanted", ErrHostile, at, to)
		}
		want, _ := x.want(at)
		if err := x.duplicate(at, to); err != nil {
			return err
		}
		x.found[want] = true
	}
	for _, p := range gone {
		x.hidden[p] = true
	}
	return nil
}

// want is the path of the Want that a file belongs to.
func (x *extraction) want(at string) (string, bool) {
	for _, w := range x.wants {
		if at == w.Path || strings.HasPrefix(at, w.Path+"/") {
			return w.Path, true
		}
	}
	return "", false
}

// gone tells that an upper layer has removed a path or a folder above it.
func (x *extraction) gone(at string) bool {
	for ; at != "." && at != "/"; at = path.Dir(at) {
		if x.hidden[at] {
			return true
		}
	}
	return x.hidden["."]
}

func (x *extraction) write(at string, h *tar.Header, content io.Reader) error {
	if x.written += h.Size; h.Size < 0 || x.written > x.limits.Written {
		return fmt.Errorf("%w: the files that are wanted have more than %d bytes", ErrHostile, x.limits.Written)
	}
	f, err := x.create(at, h.FileInfo().Mode())
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, content, h.Size)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing /%s: %w", at, err)
	}
	return nil
}

// create makes a file that nobody else may write, with the right to run it if it has that in the image.
func (x *extraction) create(at string, mode os.FileMode) (*os.File, error) {
	if x.files++; x.files > x.limits.Files {
		return nil, fmt.Errorf("%w: more than %d files are wanted", ErrHostile, x.limits.Files)
	}
	x.done[at] = true
	perm := os.FileMode(0o600)
	if mode&0o111 != 0 {
		perm = 0o700
	}
	if err := x.root.MkdirAll(path.Dir(at), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of /%s: %w", at, err)
	}
	f, err := x.root.OpenFile(at, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, perm)
	if err != nil {
		return nil, fmt.Errorf("making /%s: %w", at, err)
	}
	return f, nil
}

// duplicate stands in for a hard link.
func (x *extraction) duplicate(at, from string) error {
	in, err := x.root.Open(from)
	if err != nil {
		return fmt.Errorf("reading /%s: %w", from, err)
	}
	defer func() { _ = in.Close() }() // it was only read
	info, err := in.Stat()
	if err != nil {
		return fmt.Errorf("reading /%s: %w", from, err)
	}
	return x.write(at, &tar.Header{Name: at, Size: info.Size(), Mode: int64(info.Mode().Perm())}, in)
}
