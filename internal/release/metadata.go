package release

import (
	"encoding/json"
	"errors"
	"fmt"

	"hcp.internal/platform/internal/oci/rewrite"
)

// metadata is a release as people write it down, in place of an image.
type metadata struct {
	Version           string            `json:"version"`
	Image             string            `json:"image"`
	KubernetesVersion string            `json:"kubernetesVersion"`
	ComponentVersions map[string]string `json:"componentVersions"`
	Images            map[string]string `json:"images"`
}

// ParseMetadata reads a release from JSON: the ImageStream image-references of a payload, or {version, image, kubernetesVersion, componentVersions,
// images: {tag: pull spec}}, of which version is required. image, if set, is the reference that the release is known by.
func ParseMetadata(data []byte) (*Release, error) {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	if kind.Kind != "" {
		return parseReferences(data)
	}
	m := metadata{}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	if m.Version == "" {
		return nil, errors.New("version is missing: write for example {\"version\": \"1.36.3\", \"images\": {\"etcd\": \"registry.example.com/etcd:1\"}}")
	}
	version, err := ParseVersion(m.Version)
	if err != nil {
		return nil, fmt.Errorf("version: %w", err)
	}
	r := &Release{Version: m.Version, Image: m.Image, KubernetesVersion: m.KubernetesVersion, Kubernetes: version.Kubernetes(),
		Images: map[string]string{}, ComponentVersions: map[string]string{}}
	for tag, image := range m.Images {
		if !plausiblePullSpec(image) || len(image) > maxPullSpec {
			return nil, fmt.Errorf("images.%s: %q does not name an image", tag, image)
		}
		r.Images[tag] = image
	}
	for name, of := range m.ComponentVersions {
		r.ComponentVersions[name] = of
	}
	if r.KubernetesVersion == "" {
		if r.KubernetesVersion = r.ComponentVersions["kubernetes"]; r.Kubernetes {
			r.KubernetesVersion = r.Version
		}
	}
	return r, nil
}

// WithOverrides is the release with every image rewritten.
func (r *Release) WithOverrides(overrides []rewrite.Override) *Release {
	out := r.clone()
	for tag, image := range out.Images {
		out.Images[tag] = rewrite.Under(image, overrides)
	}
	return out
}
