package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is one entry of a layer. Exactly one of Source, Data, Link and Dir says what it is; none means an empty file.
type File struct {
	Path   string      // absolute path in the image
	Mode   fs.FileMode // permission bits, with fs.ModeSticky and fs.ModeSetuid where wanted; 0 means 0755 for folders, else 0644
	Source string      // a regular file on this machine
	Data   []byte      // content
	Link   string      // target of a symbolic link
	Dir    bool        // a folder; parents of files are added by themselves
}

// epoch is the time of every file in an image.
var epoch = time.Unix(0, 0).UTC()

// layer is an uncompressed layer that is written anew from its files each time somebody reads it, so that a layer of
// 130 MB never sits in memory.
type layer struct {
	files  []File
	digest v1.Hash
	size   int64
}

var _ v1.Layer = (*layer)(nil)

// NewLayer reads all files once to compute the digest.
func NewLayer(files ...File) (v1.Layer, error) {
	l := &layer{files: withParents(files)}
	content, err := l.Uncompressed()
	if err != nil {
		return nil, err
	}
	if l.digest, l.size, err = v1.SHA256(content); err != nil {
		return nil, err
	}
	return l, nil
}

// withParents adds missing parent folders and sorts by path, parents first.
func withParents(files []File) []File {
	have := map[string]File{}
	for _, f := range files {
		f.Path = path.Clean("/" + f.Path)
		have[f.Path] = f
	}
	for p := range have {
		for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
			if _, ok := have[dir]; !ok {
				have[dir] = File{Path: dir, Dir: true}
			}
		}
	}
	out := make([]File, 0, len(have))
	for _, f := range have {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func (l *layer) write(w io.Writer) error {
	tw := tar.NewWriter(w)
	for _, f := range l.files {
		if err := f.writeTo(tw); err != nil {
			return fmt.Errorf("adding %s to a layer: %w", f.Path, err)
		}
	}
	return tw.Close()
}

func (f File) writeTo(tw *tar.Writer) error {
	// PAX, because its encoding of a zero time does not depend on anything else.
	h := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), ModTime: epoch, Format: tar.FormatPAX, Mode: f.tarMode()}
	switch {
	case f.Dir:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return tw.WriteHeader(h)
	case f.Link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		return tw.WriteHeader(h)
	case f.Source == "":
		h.Typeflag, h.Size = tar.TypeReg, int64(len(f.Data))
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.Copy(tw, bytes.NewReader(f.Data))
		return err
	}
	src, err := os.Open(f.Source)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", f.Source)
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(tw, src)
	return err
}

func (f File) tarMode() int64 {
	mode := f.Mode
	switch {
	case f.Link != "":
		return 0o777
	case mode == 0 && f.Dir:
		mode = 0o755
	case mode == 0:
		mode = 0o644
	}
	out := int64(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		out |= 0o1000
	}
	if mode&fs.ModeSetuid != 0 {
		out |= 0o4000
	}
	return out
}

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) Size() (int64, error)                { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }
func (l *layer) Compressed() (io.ReadCloser, error)  { return l.Uncompressed() }
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(l.write(w)) }() // ends when the reader closes
	return r, nil
}
