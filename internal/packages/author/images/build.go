package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"hcp.internal/platform/internal/packages/author/load"
)

// Build makes the image of a package. The same files and labels give the same digest.
func Build(files load.Files, labels map[string]string) (v1.Image, error) {
	return build(packageFolder, files, labels)
}

func build(folder string, files load.Files, labels map[string]string) (v1.Image, error) {
	layer, err := layerOf(folder, files)
	if err != nil {
		return nil, err
	}
	config, err := empty.Image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("configuring the image: %w", err)
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = "amd64", "linux"
	config.Config.Labels = maps.Clone(labels)
	img, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		return nil, fmt.Errorf("configuring the image: %w", err)
	}
	if img, err = mutate.AppendLayers(img, layer); err != nil {
		return nil, fmt.Errorf("adding the files: %w", err)
	}
	if img, err = mutate.Canonical(img); err != nil {
		return nil, fmt.Errorf("removing times: %w", err)
	}
	return img, nil
}

func layerOf(folder string, files load.Files) (v1.Layer, error) {
	var buf bytes.Buffer
	archive := tar.NewWriter(&buf)
	for _, name := range files.Paths() {
		header := &tar.Header{Name: path.Join(folder, name), Typeflag: tar.TypeReg, Size: int64(len(files[name])), Mode: 0o644}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		if _, err := archive.Write(files[name]); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return layer, nil
}

// BuildRepository makes the image of a repository.
func BuildRepository(files load.Files) (v1.Image, error) {
	return build(repositoryFolder, files, nil)
}
