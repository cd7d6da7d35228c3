package release

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"hcp.internal/platform/internal/oci/layers"
	"hcp.internal/platform/internal/oci/pull"
	"hcp.internal/platform/internal/release/bootimages"
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
	files, err := findFiles(ctx, img, r.options.Limits)
	if err == nil {
		got.release, err = parseReferences(files.references)
	}
	if err == nil && files.bootImages != nil {
		// Without them a control plane is none the worse: who needs one says that it is missing.
		got.release.BootImages, _ = bootimages.Parse(files.bootImages)
	}
	if errors.Is(err, ErrNotARelease) { // a fact about the digest, as good as a release is
		got.notRelease = trimPrefix(err, ErrNotARelease)
		return got, nil
	}
	return got, err
}

// imageOf picks the image for this machine of a manifest list, or any when there is none: a release image is data, and the same for all.
func imageOf(desc *remote.Descriptor) (img v1.Image, list bool, err error) {
	img, list, err = pull.Image(desc, func(m v1.Descriptor) bool {
		return m.Platform == nil || m.Platform.OS == "" || m.Platform.OS == "linux"
	})
	if errors.Is(err, pull.ErrNoImage) {
		err = fmt.Errorf("%w: its manifest list has no image", ErrNotARelease)
	}
	return img, list, err
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

// files are those of a release image that are read; nil: there is none.
type files struct{ references, bootImages []byte }

// findFiles looks for image-references from the uppermost layer down; the first layer that has it, or a whiteout of it, decides. What else is read
// comes from that layer or one above it: releases are built so.
func findFiles(ctx context.Context, img v1.Image, limits Limits) (files, error) {
	found := files{}
	manifest, err := img.Manifest()
	if err != nil {
		return found, err
	}
	all, err := img.Layers()
	if err != nil {
		return found, err
	}
	if len(all) > limits.Layers || len(all) != len(manifest.Layers) {
		return found, fmt.Errorf("%w: it has %d layers, at most %d are read", ErrNotARelease, len(all), limits.Layers)
	}
	budget := layers.Budget{Compressed: limits.CompressedBytes, Unpacked: limits.UncompressedBytes}
	for i := len(all) - 1; i >= 0; i-- {
		budget.Entries = limits.Entries // of each
		if err := budget.Admit(manifest.Layers[i]); err != nil {
			return found, refused(err, limits)
		}
		err := found.readLayer(ctx, all[i], &budget, limits)
		if found.references != nil || err != nil {
			return found, refused(err, limits)
		}
	}
	return found, fmt.Errorf("%w: no layer has %s", ErrNotARelease, referencesPath)
}

// refused says that what is too much to be read is no release.
func refused(err error, limits Limits) error {
	switch {
	case errors.Is(err, layers.ErrForeign):
		return fmt.Errorf("%w: a layer lies outside its registry", ErrNotARelease)
	case errors.Is(err, layers.ErrCompressed):
		return fmt.Errorf("%w: more than %d bytes of layers would have to be read", ErrNotARelease, limits.CompressedBytes)
	case errors.Is(err, layers.ErrUnpacked):
		return fmt.Errorf("%w: its layers are larger than what is read of a release", ErrNotARelease)
	case errors.Is(err, layers.ErrEntries):
		return fmt.Errorf("%w: a layer has more than %d files", ErrNotARelease, limits.Entries)
	}
	return err
}

// readLayer adds what the layer has and those above it had not.
func (f *files) readLayer(ctx context.Context, layer v1.Layer, budget *layers.Budget, limits Limits) error {
	return budget.Walk(ctx, layer, func(header *tar.Header, content io.Reader) (bool, error) {
		into := &f.references
		switch cleanName(header.Name) {
		case bootimages.Path:
			into = &f.bootImages
		case referencesPath:
		case "release-manifests/.wh.image-references", "release-manifests/.wh..wh..opq", ".wh.release-manifests":
			return false, fmt.Errorf("%w: %s was deleted in a layer", ErrNotARelease, referencesPath)
		default:
			return false, nil
		}
		if plausible := header.Typeflag == tar.TypeReg && header.Size <= limits.FileBytes; !plausible && into == &f.bootImages {
			return false, nil
		} else if !plausible {
			return false, fmt.Errorf("%w: %s is not a file of at most %d bytes", ErrNotARelease, referencesPath, limits.FileBytes)
		}
		if *into != nil {
			return false, nil
		}
		var err error
		*into, err = io.ReadAll(io.LimitReader(content, limits.FileBytes))
		return f.references != nil && f.bootImages != nil, err
	})
}

func cleanName(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}
