package operatorpackage

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/packages/author/load"
)

//go:embed all:assets
var assets embed.FS

// Names of the images that templates ask for.
const (
	managerImage   = "package-operator-manager"
	connectorImage = "remote-phase-manager"
)

// parts are the package and its components: which images each needs, and whether it brings the definitions of the operator's kinds.
var parts = []struct {
	folder, image string
	definitions   bool
}{
	{"", managerImage, true}, {"components/remote-phase", connectorImage, false}, {"components/hosted-cluster", managerImage, true},
}

// Files are the package's, for an operator that runs from image. That one has to be named by its digest, since packages lock what they run.
func Files(image string) (load.Files, error) {
	digest, err := name.NewDigest(image)
	if err != nil {
		return nil, fmt.Errorf("image %q has to have a digest, as registry.example.com/operator@sha256:…: %w", image, err)
	}
	out := load.Files{}
	for _, part := range parts {
		source := path.Join("assets", strings.TrimPrefix(part.folder, "components/"))
		entries, err := fs.ReadDir(assets, source)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", source, err)
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			if out[path.Join(part.folder, e.Name())], err = assets.ReadFile(path.Join(source, e.Name())); err != nil {
				return nil, fmt.Errorf("reading %s: %w", e.Name(), err)
			}
		}
		helpers := "_helpers.gotmpl"
		out[path.Join(part.folder, helpers)] = out[helpers]
		if err := lock(out, part.folder, part.image, digest); err != nil {
			return nil, err
		}
		if part.definitions {
			if err := define(out, part.folder); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// lock names an image in a manifest and in its lock.
func lock(out load.Files, folder, imageName string, image name.Digest) error {
	file := path.Join(folder, "manifest.yaml")
	var manifest map[string]any
	if err := yaml.Unmarshal(out[file], &manifest); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	spec, ok := manifest["spec"].(map[string]any)
	if !ok {
		return fmt.Errorf("%s has no spec", file)
	}
	spec["images"] = []manifests.PackageManifestImage{{Name: imageName, Image: image.String()}}
	var err error
	if out[file], err = yaml.Marshal(manifest); err != nil {
		return fmt.Errorf("encoding %s: %w", file, err)
	}
	locked := map[string]any{
		"apiVersion": "manifests.package-operator.run/v1alpha1", "kind": "PackageManifestLock",
		"spec": manifests.PackageManifestLockSpec{Images: []manifests.PackageManifestLockImage{{Name: imageName, Image: image.String(), Digest: image.DigestStr()}}},
	}
	file = path.Join(folder, "manifest.lock.yaml")
	if out[file], err = yaml.Marshal(locked); err != nil {
		return fmt.Errorf("encoding %s: %w", file, err)
	}
	return nil
}

// define adds the definitions of the operator's kinds.
func define(out load.Files, folder string) error {
	crds, err := config.PackageOperatorCRDs()
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if crd.Annotations == nil {
			crd.Annotations = map[string]string{}
		}
		crd.Annotations["package-operator.run/phase"] = "crds"
		raw, err := yaml.Marshal(crd)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", crd.Name, err)
		}
		out[path.Join(folder, "crds", crd.Name+".yaml")] = raw
	}
	return nil
}
