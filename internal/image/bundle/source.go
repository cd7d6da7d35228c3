package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Names in an OCI layout.
const (
	layoutFile    = "oci-layout"
	layoutContent = `{"imageLayoutVersion":"1.0.0"}`
	indexFile     = "index.json"
)

func blobPath(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }

// maxFiles bounds what is remembered of a tar file; a bundle has some dozens of blobs.
const maxFiles = 100_000

// source is where the files of a layout are.
type source interface {
	// open returns a file by its path in the layout, and its size.
	open(name string) (io.ReadCloser, int64, error)
	io.Closer
}

// folder is a source on disk.
type folder string

func (f folder) Close() error { return nil }
func (f folder) open(name string) (io.ReadCloser, int64, error) {
	file, err := os.Open(filepath.Join(string(f), filepath.FromSlash(name)))
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, errors.Join(fmt.Errorf("%s is no file", name), err, file.Close())
	}
	return file, info.Size(), nil
}

// archive is a tar file that is read where it is; nothing is unpacked.
type archive struct {
	file  *os.File
	files map[string]span
}

type span struct{ offset, size int64 }

// newArchive looks for the files of a tar file.
func newArchive(file *os.File) (*archive, error) {
	a := &archive{file: file, files: map[string]span{}}
	tr := tar.NewReader(file)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s as a tar file: %w", file.Name(), err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		offset, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if len(a.files) == maxFiles {
			return nil, fmt.Errorf("%s has more than %d files", file.Name(), maxFiles)
		}
		a.files[path.Clean(h.Name)] = span{offset, h.Size}
	}
}

func (a *archive) Close() error { return a.file.Close() }
func (a *archive) open(name string) (io.ReadCloser, int64, error) {
	s, ok := a.files[name]
	if !ok {
		return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(io.NewSectionReader(a.file, s.offset, s.size)), s.size, nil
}

// memory is a source of things that were made just now.
type memory map[string][]byte

func (m memory) Close() error { return nil }
func (m memory) open(name string) (io.ReadCloser, int64, error) {
	data, ok := m[name]
	if !ok {
		return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
}

// add keeps data and returns its digest.
func (m memory) add(data []byte) (v1.Hash, error) {
	h, _, err := v1.SHA256(bytes.NewReader(data))
	m[blobPath(h)] = data
	return h, err
}

// checked fails at the end of a blob that isn't what its digest says.
type checked struct {
	io.ReadCloser
	sum  hash.Hash
	want v1.Hash
}

func check(r io.ReadCloser, want v1.Hash) io.ReadCloser {
	return &checked{ReadCloser: r, sum: sha256.New(), want: want}
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.sum.Write(p[:n])
	if errors.Is(err, io.EOF) && fmt.Sprintf("%x", c.sum.Sum(nil)) != c.want.Hex {
		return n, fmt.Errorf("blob %s of the bundle is damaged: get the bundle once more, and compare its checksum", c.want)
	}
	return n, err
}
