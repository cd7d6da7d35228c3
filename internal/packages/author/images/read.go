package images

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/violation"
)

// Folders in images.
const (
	packageFolder    = "package"
	repositoryFolder = "repository"
	bundleFolder     = "manifests"
	metadataFolder   = "metadata"
)

// Limits of reading an image. A package has one layer of some KiB; one built on top of another image has more, that are read past.
const (
	maxLayers       = 128
	maxCompressed   = 64 << 20
	maxUncompressed = 256 << 20
	maxEntries      = 20_000
	maxConfig       = 1 << 20
)

// Files are the files of the package in an image. Content that no package has gives a
// violation; any other error is one of reading, and may go away.
func Files(ctx context.Context, img v1.Image) (load.Files, error) {
	return filesBelow(ctx, img, packageFolder)
}

func filesBelow(ctx context.Context, img v1.Image, folder string) (load.Files, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("reading the image's manifest: %w", err)
	}
	if len(manifest.Layers) > maxLayers {
		return nil, &violation.Error{Reason: violation.TooLarge, Details: fmt.Sprintf("%d layers, at most %d are read", len(manifest.Layers), maxLayers)}
	}
	if manifest.Config.Size > maxConfig {
		return nil, &violation.Error{Reason: violation.TooLarge, Details: fmt.Sprintf("its configuration has more than %d bytes", maxConfig)}
	}
	compressed := int64(0)
	for i, l := range manifest.Layers {
		if len(l.URLs) > 0 {
			return nil, &violation.Error{Reason: violation.InvalidFile, Details: fmt.Sprintf("layer %d lies outside the registry", i)}
		}
		if !l.MediaType.IsLayer() {
			return nil, &violation.Error{Reason: violation.InvalidFile, Details: fmt.Sprintf("layer %d has media type %q, which is no archive of files", i, clipped(string(l.MediaType)))}
		}
		if compressed += l.Size; l.Size < 0 || compressed > maxCompressed {
			return nil, &violation.Error{Reason: violation.TooLarge, Details: fmt.Sprintf("its layers have more than %d bytes", maxCompressed)}
		}
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, fmt.Errorf("reading the image's layers: %w", err)
	}
	r := &reader{folder: folder, files: load.Files{}, left: maxUncompressed}
	for i, l := range layers {
		if err := r.layer(ctx, l); err != nil {
			return nil, describe(i, err)
		}
	}
	if len(r.files) == 0 {
		return nil, &violation.Error{Reason: violation.Empty}
	}
	return r.files, nil
}

// maxName bounds text that a registry chose.
const maxName = 100

func clipped(s string) string { return clip.Over(s, maxName, "…") }

func describe(layer int, err error) error {
	if _, ok := errors.AsType[*violation.Error](err); ok {
		return err
	}
	return fmt.Errorf("reading layer %d: %w", layer, err)
}

// reader collects the files of a folder from layers; later ones replace what earlier ones have.
type reader struct {
	folder      string
	files       load.Files
	total, left int64
	entries     int
}

func (r *reader) layer(ctx context.Context, l v1.Layer) error {
	stream, err := l.Uncompressed()
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // errors were seen while reading
	bounded := &boundedReader{ctx: ctx, from: stream, left: &r.left}
	if err := r.archive(tar.NewReader(bounded)); err != nil {
		return cmp.Or(bounded.err, err)
	}
	// Only at the end is the layer's digest verified.
	_, err = io.Copy(io.Discard, bounded)
	return err
}

func (r *reader) archive(archive *tar.Reader) error {
	seen := map[string]bool{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if r.entries++; r.entries > maxEntries {
			return &violation.Error{Reason: violation.TooLarge, Details: fmt.Sprintf("its layers have more than %d entries", maxEntries)}
		}
		name, wanted, err := r.judge(header)
		if err != nil {
			return err
		}
		if !wanted {
			continue
		}
		if seen[name] {
			return &violation.Error{Reason: violation.InvalidFile, Path: clipped(name), Details: "it is in the same layer twice"}
		}
		seen[name] = true
		if load.Hidden(name) {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(archive, load.MaxFile+1))
		if err != nil {
			return err
		}
		if err := r.files.Add(name, data, &r.total); err != nil {
			return err
		}
	}
}

// judge says what an entry is: its path in the package, whether it is a file of it, or why it must not be there.
func (r *reader) judge(header *tar.Header) (name string, wanted bool, err error) {
	refuse := func(why string) (string, bool, error) {
		return "", false, &violation.Error{Reason: violation.InvalidFile, Path: clipped(header.Name), Details: why}
	}
	if path.IsAbs(header.Name) || strings.ContainsAny(header.Name, "\x00\\") {
		return refuse("its path is absolute, or has characters that no path of a package has")
	}
	for part := range strings.SplitSeq(header.Name, "/") {
		if part == ".." {
			return refuse("its path leads out of the image")
		}
	}
	clean := path.Clean(header.Name)
	rest, inside := strings.CutPrefix(clean, r.folder+"/")
	switch header.Typeflag {
	case tar.TypeDir:
		return "", false, nil
	case tar.TypeReg:
		return rest, inside, nil
	case tar.TypeXGlobalHeader:
		return "", false, nil
	case tar.TypeSymlink, tar.TypeLink:
		if inside || clean == r.folder {
			return refuse("it is a link")
		}
		return "", false, nil
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return refuse("it is a device or pipe")
	}
	if inside {
		return refuse("it is no plain file")
	}
	return "", false, nil
}

// boundedReader fails with a violation when more than *left bytes are read, or when ctx is done. err keeps that error, which an archive reader may replace.
type boundedReader struct {
	ctx  context.Context //nolint:containedctx // a reader has no other way to hear of it
	from io.Reader
	left *int64
	err  error
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	if err := context.Cause(b.ctx); err != nil {
		b.err = err
		return 0, err
	}
	n, err := b.from.Read(p)
	if *b.left -= int64(n); *b.left < 0 {
		b.err = &violation.Error{Reason: violation.TooLarge, Details: fmt.Sprintf("its layers unpack to more than %d bytes", maxUncompressed)}
		return n, b.err
	}
	return n, err
}

// RepositoryFiles are the files of a repository in an image.
func RepositoryFiles(ctx context.Context, img v1.Image) (load.Files, error) {
	return filesBelow(ctx, img, repositoryFolder)
}

// BundleFiles are the manifests and the annotations of an OLM bundle in an image; annotations may be missing.
func BundleFiles(ctx context.Context, img v1.Image) (manifests load.Files, annotations []byte, err error) {
	if manifests, err = filesBelow(ctx, img, bundleFolder); err != nil {
		return nil, nil, err
	}
	metadata, err := filesBelow(ctx, img, metadataFolder)
	if v, ok := errors.AsType[*violation.Error](err); ok && v.Reason == violation.Empty {
		err = nil
	}
	return manifests, metadata["annotations.yaml"], err
}
