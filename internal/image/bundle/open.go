package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// maxManifest bounds manifests and indexes; ours have some KiB.
const maxManifest = 4 << 20

// Bundle is an OCI layout that was opened.
type Bundle struct {
	// Entries are in the order of the layout.
	Entries []Entry

	src source
}

// Open reads the index of a bundle: a folder, or a tar file of one. It has to be closed.
func Open(name string) (*Bundle, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("opening the bundle: %w", err)
	}
	var src source = folder(name)
	if !info.IsDir() {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("opening the bundle: %w", err)
		}
		if src, err = newArchive(file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	b := &Bundle{src: src}
	if err := b.read(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; name the folder images of a distribution, or a file that `hypershift images save` wrote", err)
		}
		return nil, errors.Join(fmt.Errorf("%s is no bundle: %w", name, err), src.Close())
	}
	return b, nil
}

// Close ends the use of a bundle.
func (b *Bundle) Close() error { return b.src.Close() }

func (b *Bundle) read() error {
	raw, err := readFile(b.src, indexFile)
	if err != nil {
		return err
	}
	index, err := parseIndex(raw)
	if err != nil {
		return err
	}
	for _, d := range index.Manifests {
		e, err := entryOf(d)
		if err != nil {
			return err
		}
		blobs, platforms, err := b.reach(d)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		for _, blob := range blobs {
			e.Bytes += blob.Size
		}
		e.Platforms = platforms
		b.Entries = append(b.Entries, e)
	}
	return nil
}

// reach lists all blobs that belong to a descriptor, itself first, and the platforms of its images.
func (b *Bundle) reach(d v1.Descriptor) (blobs []v1.Descriptor, platforms []string, err error) {
	blobs = []v1.Descriptor{d}
	if d.MediaType.IsIndex() {
		index, err := b.index(d)
		if err != nil {
			return nil, nil, err
		}
		for _, child := range index.parsed.Manifests {
			if child.MediaType.IsIndex() {
				return nil, nil, fmt.Errorf("index %s holds another index", d.Digest)
			}
			below, _, err := b.reach(child)
			if err != nil {
				return nil, nil, err
			}
			blobs = append(blobs, below...)
			if child.Platform != nil {
				platforms = append(platforms, child.Platform.OS+"/"+child.Platform.Architecture)
			}
		}
		return blobs, platforms, nil
	}
	manifest, err := b.manifest(d)
	if err != nil {
		return nil, nil, err
	}
	blobs = append(blobs, manifest.parsed.Config)
	return append(blobs, manifest.parsed.Layers...), nil, nil
}

// readFile reads a small file of a layout.
func readFile(src source, name string) ([]byte, error) {
	r, size, err := src.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > maxManifest {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", name, size, maxManifest)
	}
	return io.ReadAll(r)
}

// readBlob reads a small blob and compares it with its digest.
func readBlob(src source, h v1.Hash) ([]byte, error) {
	r, size, err := src.open(blobPath(h))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > maxManifest {
		return nil, fmt.Errorf("manifest %s has %d bytes, more than %d", h, size, maxManifest)
	}
	return io.ReadAll(check(r, h))
}
