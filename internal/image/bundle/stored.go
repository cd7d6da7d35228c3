package bundle

import (
	"bytes"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// manifest is an image in a source, as libraries want it.
type manifest struct {
	src    source
	raw    []byte
	parsed v1.Manifest
}

var _ partial.CompressedImageCore = (*manifest)(nil)

func (b *Bundle) manifest(d v1.Descriptor) (*manifest, error) {
	raw, err := readBlob(b.src, d.Digest)
	if err != nil {
		return nil, err
	}
	return newManifest(b.src, raw)
}

func newManifest(src source, raw []byte) (*manifest, error) {
	parsed, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("parsing a manifest: %w", err)
	}
	return &manifest{src, raw, *parsed}, nil
}

// image is m with the methods that can be computed.
func (m *manifest) image() (v1.Image, error) { return partial.CompressedToImage(m) }

func (m *manifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (m *manifest) RawManifest() ([]byte, error)        { return m.raw, nil }
func (m *manifest) RawConfigFile() ([]byte, error)      { return readBlob(m.src, m.parsed.Config.Digest) }
func (m *manifest) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	for _, d := range append([]v1.Descriptor{m.parsed.Config}, m.parsed.Layers...) {
		if d.Digest == h {
			return &blob{m.src, d}, nil
		}
	}
	return nil, fmt.Errorf("no layer has the digest %s", h)
}

// blob is a layer in a source.
type blob struct {
	src source
	d   v1.Descriptor
}

func (b *blob) Digest() (v1.Hash, error)            { return b.d.Digest, nil }
func (b *blob) Size() (int64, error)                { return b.d.Size, nil }
func (b *blob) MediaType() (types.MediaType, error) { return b.d.MediaType, nil }
func (b *blob) Compressed() (io.ReadCloser, error) {
	r, size, err := b.src.open(blobPath(b.d.Digest))
	if err != nil {
		return nil, err
	}
	if size != b.d.Size {
		return nil, fmt.Errorf("blob %s of the bundle has %d bytes, want %d: get the bundle once more", b.d.Digest, size, b.d.Size)
	}
	return check(r, b.d.Digest), nil
}

// index is an index of images in a source.
type index struct {
	b      *Bundle
	raw    []byte
	parsed v1.IndexManifest
}

var _ v1.ImageIndex = (*index)(nil)

func (b *Bundle) index(d v1.Descriptor) (*index, error) {
	raw, err := readBlob(b.src, d.Digest)
	if err != nil {
		return nil, err
	}
	parsed, err := parseIndex(raw)
	if err != nil {
		return nil, err
	}
	return &index{b, raw, *parsed}, nil
}

func parseIndex(raw []byte) (*v1.IndexManifest, error) {
	parsed, err := v1.ParseIndexManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("parsing an index: %w", err)
	}
	return parsed, nil
}

func (i *index) MediaType() (types.MediaType, error)       { return types.OCIImageIndex, nil }
func (i *index) Digest() (v1.Hash, error)                  { return partial.Digest(i) }
func (i *index) Size() (int64, error)                      { return partial.Size(i) }
func (i *index) RawManifest() ([]byte, error)              { return i.raw, nil }
func (i *index) IndexManifest() (*v1.IndexManifest, error) { return i.parsed.DeepCopy(), nil }
func (i *index) ImageIndex(h v1.Hash) (v1.ImageIndex, error) {
	return nil, fmt.Errorf("%s: an index of ours holds no other", h)
}
func (i *index) Image(h v1.Hash) (v1.Image, error) {
	for _, d := range i.parsed.Manifests {
		if d.Digest == h {
			m, err := i.b.manifest(d)
			if err != nil {
				return nil, err
			}
			return m.image()
		}
	}
	return nil, fmt.Errorf("no image has the digest %s", h)
}

// artifact is an image that holds a config and one layer of any kind, in memory.
func artifact(config []byte, configType types.MediaType, layer []byte, layerType types.MediaType, annotations map[string]string) (memory, *manifest, error) {
	src := memory{}
	configHash, err := src.add(config)
	if err != nil {
		return nil, nil, err
	}
	layerHash, err := src.add(layer)
	if err != nil {
		return nil, nil, err
	}
	raw, err := encode(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config:      v1.Descriptor{MediaType: configType, Digest: configHash, Size: int64(len(config))},
		Layers:      []v1.Descriptor{{MediaType: layerType, Digest: layerHash, Size: int64(len(layer))}},
		Annotations: annotations,
	})
	if err != nil {
		return nil, nil, err
	}
	m, err := newManifest(src, raw)
	return src, m, err
}
