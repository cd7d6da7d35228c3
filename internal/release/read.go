package release

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const (
	referencesPath = "release-manifests/image-references"
	// maxConfig bounds the configuration of an image; real ones have some KiB.
	maxConfig = 4 << 20
	// maxLabels bounds what is kept of it.
	maxLabels = 256
)

func isDigest(ref string) bool { return strings.Contains(ref, "@sha256:") }

// read gets what is needed of the image behind desc.
func (r *Registry) read(ctx context.Context, desc *remote.Descriptor, what need) (*content, error) {
	img, list, err := imageOf(desc)
	if err != nil {
		return nil, err
	}
	got := &content{digest: desc.Digest.String(), have: what | needLabels}
	if got.arch, got.labels, err = describe(img); err != nil {
		return nil, err
	}
	if list {
		got.arch = ArchMulti
	}
	if what&needRelease == 0 {
		return got, nil
	}
	references, err := findReferences(ctx, img, r.options.Limits)
	if err == nil {
		got.release, err = parseReferences(references)
	}
	if errors.Is(err, ErrNotARelease) { // a fact about the digest, as good as a release is
		got.notRelease = trimPrefix(err, ErrNotARelease)
		return got, nil
	}
	return got, err
}

// imageOf picks the image for this machine of a manifest list, or any when there is none: a release image is data, and the same for all.
func imageOf(desc *remote.Descriptor) (img v1.Image, list bool, err error) {
	if !desc.MediaType.IsIndex() {
		img, err = desc.Image()
		return img, false, err
	}
	if img, err = desc.Image(); err == nil {
		return img, true, nil
	}
	index, err := desc.ImageIndex()
	if err != nil {
		return nil, true, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, true, err
	}
	for _, m := range manifest.Manifests {
		if m.MediaType.IsImage() && (m.Platform == nil || m.Platform.OS == "" || m.Platform.OS == "linux") {
			img, err = index.Image(m.Digest)
			return img, true, err
		}
	}
	return nil, true, fmt.Errorf("%w: its manifest list has no image", ErrNotARelease)
}

func describe(img v1.Image) (arch string, labels map[string]string, err error) {
	manifest, err := img.Manifest()
	if err != nil {
		return "", nil, err
	}
	if manifest.Config.Size > maxConfig {
		return "", nil, fmt.Errorf("%w: its configuration is larger than %d bytes", ErrNotARelease, maxConfig)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return "", nil, err
	}
	if len(config.Config.Labels) <= maxLabels {
		labels = maps.Clone(config.Config.Labels)
	}
	return strings.ToUpper(config.Architecture), labels, nil
}

// findReferences looks for image-references from the uppermost layer down; the first layer that has it, or a whiteout of it, decides.
func findReferences(ctx context.Context, img v1.Image, limits Limits) ([]byte, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	if len(layers) > limits.Layers || len(layers) != len(manifest.Layers) {
		return nil, fmt.Errorf("%w: it has %d layers, at most %d are read", ErrNotARelease, len(layers), limits.Layers)
	}
	compressed, uncompressed := limits.CompressedBytes, limits.UncompressedBytes
	for i := len(layers) - 1; i >= 0; i-- {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		size := manifest.Layers[i].Size
		if compressed -= size; size < 0 || compressed < 0 {
			return nil, fmt.Errorf("%w: more than %d bytes of layers would have to be read", ErrNotARelease, limits.CompressedBytes)
		}
		if len(manifest.Layers[i].URLs) > 0 {
			return nil, fmt.Errorf("%w: a layer lies outside its registry", ErrNotARelease)
		}
		found, err := readLayer(layers[i], &uncompressed, limits)
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, fmt.Errorf("%w: no layer has %s", ErrNotARelease, referencesPath)
}

// readLayer returns the file if the layer has it, and nil if not. It reads to the end, because only then is the layer's digest verified.
// budget is what may still be decompressed.
func readLayer(layer v1.Layer, budget *int64, limits Limits) ([]byte, error) {
	stream, err := layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // read-only; errors were seen while reading
	bounded := &boundedReader{from: stream, left: budget}
	found, err := scan(tar.NewReader(bounded), limits)
	if err != nil {
		return nil, cmp.Or(bounded.err, err)
	}
	if _, err := io.Copy(io.Discard, bounded); err != nil {
		return nil, err
	}
	return found, nil
}

func scan(archive *tar.Reader, limits Limits) ([]byte, error) {
	for range limits.Entries {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		switch cleanName(header.Name) {
		case referencesPath:
			if header.Typeflag != tar.TypeReg || header.Size > limits.FileBytes {
				return nil, fmt.Errorf("%w: %s is not a file of at most %d bytes", ErrNotARelease, referencesPath, limits.FileBytes)
			}
			return io.ReadAll(io.LimitReader(archive, limits.FileBytes))
		case "release-manifests/.wh.image-references", "release-manifests/.wh..wh..opq", ".wh.release-manifests":
			return nil, fmt.Errorf("%w: %s was deleted in a layer", ErrNotARelease, referencesPath)
		}
	}
	return nil, fmt.Errorf("%w: a layer has more than %d files", ErrNotARelease, limits.Entries)
}

func cleanName(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

// boundedReader fails with ErrNotARelease when more than *left bytes are read. err keeps that error, which an archive reader may replace.
type boundedReader struct {
	from io.Reader
	left *int64
	err  error
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if *b.left -= int64(n); *b.left < 0 {
		b.err = fmt.Errorf("%w: its layers are larger than what is read of a release", ErrNotARelease)
		return n, b.err
	}
	return n, err
}
