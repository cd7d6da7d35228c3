package images

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"

	"hcp.internal/platform/internal/oci/rewrite"
)

// Rewrite says where images are to be had.
type Rewrite struct {
	// Prefixes are replaced in every image, the longest that matches.
	Prefixes []rewrite.Override
	// Hosts are registries to pull from instead of others.
	Hosts []rewrite.Override
}

// Prefix replaces the prefix of an image.
func (r Rewrite) Prefix(image string) string { return rewrite.Prefix(image, r.Prefixes) }

// Pull is the reference that an image, whose prefix was replaced already, is pulled by.
func (r Rewrite) Pull(image string) (name.Reference, error) {
	if host, ok := rewrite.Match(image, r.Hosts); ok {
		return OnHost(image, host.To)
	}
	ref, err := name.ParseReference(image)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", image, err)
	}
	return ref, nil
}

// OnHost is an image on another registry, with the same repository and tag or digest.
func OnHost(image, host string) (name.Reference, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", image, err)
	}
	separator := ":"
	if _, ok := ref.(name.Digest); ok {
		separator = "@"
	}
	moved, err := name.ParseReference(host + "/" + ref.Context().RepositoryStr() + separator + ref.Identifier())
	if err != nil {
		return nil, fmt.Errorf("image %q on %s: %w", image, host, err)
	}
	return moved, nil
}

// Pinned is an image by digest, with its registry and repository in full and without tag.
func (r Rewrite) Pinned(image, digest string) (string, error) {
	ref, err := name.ParseReference(r.Prefix(image))
	if err != nil {
		return "", fmt.Errorf("image %q: %w", image, err)
	}
	return ref.Context().Name() + "@" + digest, nil
}
