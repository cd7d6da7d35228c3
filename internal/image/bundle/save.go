package bundle

import (
	"archive/tar"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Save writes entries of b as one tar file, which Open reads. The same entries give the same bytes.
func (b *Bundle) Save(out io.Writer, entries []Entry) error {
	w := &Writer{}
	blobs := map[v1.Hash]v1.Descriptor{}
	for _, e := range entries {
		below, _, err := b.reach(e.descriptor)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		for _, d := range below {
			blobs[d.Digest] = d
		}
		w.Add(e, e.descriptor)
	}
	slices.SortFunc(w.entries, func(a, b v1.Descriptor) int {
		return cmp.Compare(a.Annotations[annotationName], b.Annotations[annotationName])
	})
	index, err := encode(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: w.entries})
	if err != nil {
		return err
	}
	tw := tar.NewWriter(out)
	for _, f := range []struct{ name, content string }{{layoutFile, layoutContent}, {indexFile, string(index)}} {
		if err := tw.WriteHeader(header(f.name, int64(len(f.content)))); err != nil {
			return err
		}
		if _, err := io.WriteString(tw, f.content); err != nil {
			return err
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(blobs), func(a, b v1.Hash) int { return cmp.Compare(a.Hex, b.Hex) }) {
		if err := b.copy(tw, blobs[h]); err != nil {
			return fmt.Errorf("copying blob %s: %w", h, err)
		}
	}
	return tw.Close()
}

func (b *Bundle) copy(tw *tar.Writer, d v1.Descriptor) error {
	r, err := (&blob{b.src, d}).Compressed()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := tw.WriteHeader(header(blobPath(d.Digest), d.Size)); err != nil {
		return err
	}
	_, err = io.Copy(tw, r)
	return err
}

// header is that of a file whose time and owner nobody needs.
func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: int64(fs.FileMode(0o644)), ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatPAX}
}
