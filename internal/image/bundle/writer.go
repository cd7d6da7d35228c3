package bundle

import (
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Writer makes a bundle in a folder. The same images give the same bytes, in whichever order they are added.
type Writer struct {
	dir        string
	entries    []v1.Descriptor
	compressed map[v1.Hash]v1.Descriptor // by the digest of a layer as it was
}

// NewWriter begins a bundle in a folder that is made, and must not hold one yet.
func NewWriter(dir string) (*Writer, error) {
	if _, err := os.Stat(filepath.Join(dir, layoutFile)); err == nil {
		return nil, fmt.Errorf("%s holds a bundle: remove it first", dir)
	}
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return nil, fmt.Errorf("making the bundle: %w", err)
	}
	return &Writer{dir: dir, compressed: map[v1.Hash]v1.Descriptor{}}, nil
}

// Image adds an image, its layers compressed, and returns its descriptor with the platform.
func (w *Writer) Image(img v1.Image) (v1.Descriptor, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading the image's config: %w", err)
	}
	raw, err := img.RawConfigFile()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading the image's config: %w", err)
	}
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	if m.Config, err = w.data(raw, types.OCIConfigJSON); err != nil {
		return v1.Descriptor{}, err
	}
	layers, err := img.Layers()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading the image's layers: %w", err)
	}
	for _, l := range layers {
		d, err := w.layer(l)
		if err != nil {
			return v1.Descriptor{}, err
		}
		m.Layers = append(m.Layers, d)
	}
	d, err := w.json(m, types.OCIManifestSchema1)
	d.Platform = &v1.Platform{OS: config.OS, Architecture: config.Architecture}
	return d, err
}

// Index adds an index of images.
func (w *Writer) Index(images ...v1.Descriptor) (v1.Descriptor, error) {
	images = slices.Clone(images)
	slices.SortFunc(images, func(a, b v1.Descriptor) int { return cmp.Compare(a.Platform.String(), b.Platform.String()) })
	return w.json(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: images}, types.OCIImageIndex)
}

// Add gives something that was added a name.
func (w *Writer) Add(e Entry, d v1.Descriptor) {
	d.Platform = nil
	d.Annotations = e.annotations()
	w.entries = append(w.entries, d)
}

// Close writes the index. Without it the folder is no bundle.
func (w *Writer) Close() error {
	slices.SortFunc(w.entries, func(a, b v1.Descriptor) int {
		return cmp.Compare(a.Annotations[annotationName], b.Annotations[annotationName])
	})
	raw, err := encode(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: w.entries})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(w.dir, indexFile), raw, 0o644), os.WriteFile(filepath.Join(w.dir, layoutFile), []byte(layoutContent), 0o644))
}

func encode(v any) ([]byte, error) {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding a manifest: %w", err)
	}
	return append(raw, '\n'), nil
}

func (w *Writer) json(v any, media types.MediaType) (v1.Descriptor, error) {
	raw, err := encode(v)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return w.data(raw, media)
}

func (w *Writer) data(raw []byte, media types.MediaType) (v1.Descriptor, error) {
	return w.blob(media, func(out io.Writer) error {
		_, err := out.Write(raw)
		return err
	})
}

// layer adds a layer, compressed. What two images share is compressed once.
func (w *Writer) layer(l v1.Layer) (v1.Descriptor, error) {
	diff, err := l.DiffID()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading a layer: %w", err)
	}
	if d, ok := w.compressed[diff]; ok {
		return d, nil
	}
	d, err := w.blob(types.OCILayer, func(out io.Writer) error {
		in, err := l.Uncompressed()
		if err != nil {
			return err
		}
		defer in.Close()
		z := gzip.NewWriter(out) // without name and time: the same layer has the same bytes
		if _, err := io.Copy(z, in); err != nil {
			return err
		}
		return z.Close()
	})
	w.compressed[diff] = d
	return d, err
}

// blob writes a blob under its digest.
func (w *Writer) blob(media types.MediaType, write func(io.Writer) error) (v1.Descriptor, error) {
	folder := filepath.Join(w.dir, "blobs", "sha256")
	file, err := os.CreateTemp(folder, ".new-")
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("writing a blob: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // unless it has its name
	sum := sha256.New()
	err = write(io.MultiWriter(file, sum))
	size, seeking := file.Seek(0, io.SeekCurrent)
	if err := errors.Join(err, seeking, file.Chmod(0o644), file.Close()); err != nil {
		return v1.Descriptor{}, fmt.Errorf("writing a blob: %w", err)
	}
	h := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}
	return v1.Descriptor{MediaType: media, Digest: h, Size: size}, os.Rename(file.Name(), filepath.Join(folder, h.Hex))
}
