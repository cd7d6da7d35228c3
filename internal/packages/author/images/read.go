package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/oci/layers"
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
	r := &reader{folder: folder, files: load.Files{}, budget: layers.Budget{Compressed: maxCompressed, Unpacked: maxUncompressed, Entries: maxEntries}}
	for i, l := range manifest.Layers {
		if err := r.budget.Admit(l); err != nil {
			return nil, describe(i, err)
		}
		if !l.MediaType.IsLayer() {
			return nil, &violation.Error{Reason: violation.InvalidFile, Details: fmt.Sprintf("layer %d has media type %q, which is no archive of files", i, clipped(string(l.MediaType)))}
		}
	}
	all, err := img.Layers()
	if err != nil {
		return nil, fmt.Errorf("reading the image's layers: %w", err)
	}
	for i, l := range all {
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

// describe says which layer can't be read, and makes what is too much a violation.
func describe(layer int, err error) error {
	tooLarge := func(format string, limit int) error {
		return &violation.Error{Reason: violation.TooLarge, Details: fmt.Sprintf(format, limit)}
	}
	switch {
	case errors.Is(err, layers.ErrForeign):
		return &violation.Error{Reason: violation.InvalidFile, Details: fmt.Sprintf("layer %d lies outside the registry", layer)}
	case errors.Is(err, layers.ErrCompressed):
		return tooLarge("its layers have more than %d bytes", maxCompressed)
	case errors.Is(err, layers.ErrUnpacked):
		return tooLarge("its layers unpack to more than %d bytes", maxUncompressed)
	case errors.Is(err, layers.ErrEntries):
		return tooLarge("its layers have more than %d entries", maxEntries)
	}
	if _, ok := errors.AsType[*violation.Error](err); ok {
		return err
	}
	return fmt.Errorf("reading layer %d: %w", layer, err)
}

// reader collects the files of a folder from layers; later ones replace what earlier ones have.
type reader struct {
	folder string
	files  load.Files
	total  int64
	budget layers.Budget
}

func (r *reader) layer(ctx context.Context, l v1.Layer) error {
	seen := map[string]bool{}
	return r.budget.Walk(ctx, l, func(header *tar.Header, content io.Reader) (bool, error) {
		return false, r.entry(header, content, seen)
	})
}

// entry takes in one of a layer of which these were seen.
func (r *reader) entry(header *tar.Header, content io.Reader, seen map[string]bool) error {
	name, wanted, err := r.judge(header)
	if err != nil || !wanted {
		return err
	}
	if seen[name] {
		return &violation.Error{Reason: violation.InvalidFile, Path: clipped(name), Details: "it is in the same layer twice"}
	}
	seen[name] = true
	if load.Hidden(name) {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(content, load.MaxFile+1))
	if err != nil {
		return err
	}
	return r.files.Add(name, data, &r.total)
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
