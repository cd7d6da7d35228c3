package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ArchMulti is the architecture of a release whose image is a manifest list.
const ArchMulti = "Multi"

// Release is the content of a release image. Values that a Provider returns are shared: treat them as read-only.
type Release struct {
	Image      string            // the reference that was asked for
	Digest     string            // "sha256:…" of what Image resolved to; of the manifest list when it is one
	Version    string            // for example "1.36.3" or "4.20.3"
	Images     map[string]string // component tag → pull spec
	Kubernetes bool              // a plain Kubernetes release; false for an OpenShift payload
	// KubernetesVersion is the version of Kubernetes inside: Version itself for a Kubernetes release, the one that the payload declares
	// for OpenShift. Empty when the payload does not say.
	KubernetesVersion string
	// ComponentVersions is what the tags declare as io.openshift.build.versions, for example kubernetes → 1.36.3.
	ComponentVersions map[string]string
	// Placeholders has a tag without an image stand for itself; for previews.
	Placeholders bool
	// Arch is the architecture of the image in upper case (AMD64, ARM64, PPC64LE, S390X) or ArchMulti.
	Arch string
}

// ImageFor returns the pull spec of a component tag.
func (r *Release) ImageFor(tag string) (string, bool) {
	if image := r.Images[tag]; image != "" {
		return image, true
	}
	if r.Placeholders {
		return tag, true
	}
	return "", false
}

// Missing lists those of tags that the release has no image for, sorted.
func (r *Release) Missing(tags ...string) []string {
	var missing []string
	for _, tag := range tags {
		if _, ok := r.ImageFor(tag); !ok {
			missing = append(missing, tag)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// Pinned is the reference of the release by digest: the repository of Image and Digest.
func (r *Release) Pinned() string {
	return pin(r.Image, r.Digest)
}

// Matches tells whether image names this release, in the form that was asked for or by digest.
func (r *Release) Matches(image string) bool {
	return image != "" && (image == r.Image || image == r.Pinned())
}

func (r *Release) clone() *Release {
	c := *r
	c.Images = maps.Clone(r.Images)
	c.ComponentVersions = maps.Clone(r.ComponentVersions)
	return &c
}

// pin replaces the tag or digest of image by digest.
func pin(image, digest string) string {
	if digest == "" {
		return image
	}
	repository, _, _ := strings.Cut(image, "@")
	// A colon after the last slash starts a tag; one before it belongs to the registry's port.
	if colon := strings.LastIndex(repository, ":"); colon > strings.LastIndex(repository, "/") {
		repository = repository[:colon]
	}
	return repository + "@" + digest
}

// Provider looks releases up. Implementations may be called concurrently.
//
// The errors it returns wrap one of the sentinels of errors.go where the cause is known.
type Provider interface {
	// Lookup reads the release image. pullSecret is the content of a .dockerconfigjson key, or nil for anonymous access.
	Lookup(ctx context.Context, image string, pullSecret []byte) (*Release, error)
}

// Bounds of what is believed of an image-references file. A payload has about 200 tags.
const (
	maxTags       = 2000
	maxNameLength = 255
	maxPullSpec   = 1024
)

const buildVersionsAnnotation = "io.openshift.build.versions"

// imageReferences is the part of an ImageStream that a release uses.
type imageReferences struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Tags []struct {
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
			From        *struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
			} `json:"from"`
		} `json:"tags"`
	} `json:"spec"`
}

// parseReferences reads an image-references file. The file comes from an image that a user named, so every part of it is checked.
func parseReferences(data []byte) (*Release, error) {
	refs := imageReferences{}
	if err := json.Unmarshal(data, &refs); err != nil {
		return nil, fmt.Errorf("%w: %s is not valid JSON", ErrNotARelease, referencesPath)
	}
	if refs.Kind != "ImageStream" {
		return nil, fmt.Errorf("%w: %s is not an ImageStream", ErrNotARelease, referencesPath)
	}
	version, err := ParseVersion(refs.Metadata.Name)
	if err != nil || len(refs.Metadata.Name) > maxNameLength {
		return nil, fmt.Errorf("%w: the name of its ImageStream is not a version", ErrNotARelease)
	}
	if len(refs.Spec.Tags) == 0 || len(refs.Spec.Tags) > maxTags {
		return nil, fmt.Errorf("%w: %s has %d tags, want 1 to %d", ErrNotARelease, referencesPath, len(refs.Spec.Tags), maxTags)
	}
	r := &Release{Version: refs.Metadata.Name, Kubernetes: version.Kubernetes(), Images: map[string]string{}, ComponentVersions: map[string]string{}}
	for _, tag := range refs.Spec.Tags {
		if tag.From == nil || tag.Name == "" {
			continue
		}
		if len(tag.Name) > maxNameLength || len(tag.From.Name) > maxPullSpec || !plausiblePullSpec(tag.From.Name) {
			return nil, fmt.Errorf("%w: a tag of %s does not name an image", ErrNotARelease, referencesPath)
		}
		r.Images[tag.Name] = tag.From.Name
		addComponentVersions(r.ComponentVersions, tag.Annotations[buildVersionsAnnotation])
	}
	r.KubernetesVersion = r.ComponentVersions["kubernetes"]
	if r.Kubernetes {
		r.KubernetesVersion = r.Version
	}
	return r, nil
}

// addComponentVersions reads "kubernetes=1.36.3,etcd=3.6.8"; what does not parse is left out.
func addComponentVersions(into map[string]string, annotation string) {
	if len(annotation) > maxPullSpec {
		return
	}
	for pair := range strings.SplitSeq(annotation, ",") {
		name, version, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if _, err := ParseVersion(version); ok && err == nil && name != "" {
			into[name] = version
		}
	}
}

// plausiblePullSpec refuses what could not be an image reference. It keeps control characters and spaces out of manifests and messages;
// the container runtime parses the reference for good.
func plausiblePullSpec(s string) bool {
	if s == "" {
		return false
	}
	for _, c := range s {
		if c <= ' ' || c > '~' || strings.ContainsRune("\"'`\\<>{}|^$;&()*?!", c) {
			return false
		}
	}
	return true
}
