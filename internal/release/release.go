package release

import (
	"context"
	"maps"
	"slices"
	"strings"

	"hcp.internal/platform/internal/release/bootimages"
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
	// ComponentVersions is what the tags declare as io.openshift.build.versions, for example kubernetes → 1.36.3, and "release" → Version.
	ComponentVersions map[string]string
	// Placeholders has a tag without an image stand for itself; for previews.
	Placeholders bool
	// BootImages are what machines boot from; nil for Kubernetes releases, whose machines boot what their platform has.
	BootImages *bootimages.Streams
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
