package images

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Override replaces From by To.
type Override struct{ From, To string }

// ParseOverrides reads "from=to,from2=to2".
func ParseOverrides(s string) ([]Override, error) {
	var out []Override
	for pair := range strings.SplitSeq(s, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		from, to, ok := strings.Cut(pair, "=")
		if !ok || from == "" || to == "" {
			return nil, fmt.Errorf("parsing override %q: write it as from=to", pair)
		}
		out = append(out, Override{From: from, To: to})
	}
	// The longest match wins.
	slices.SortStableFunc(out, func(a, b Override) int { return cmp.Compare(len(b.From), len(a.From)) })
	return out, nil
}

// Rewrite says where images are to be had.
type Rewrite struct {
	// Prefixes are replaced in every image, the longest that matches. They are sorted as ParseOverrides gives them.
	Prefixes []Override
	// Hosts are registries to pull from instead of others.
	Hosts []Override
}

// Prefix replaces the prefix of an image.
func (r Rewrite) Prefix(image string) string {
	for _, o := range r.Prefixes {
		if rest, ok := strings.CutPrefix(image, o.From); ok {
			return o.To + rest
		}
	}
	return image
}

// Pull is the reference that an image, whose prefix was replaced already, is pulled by.
func (r Rewrite) Pull(image string) (name.Reference, error) {
	for _, o := range r.Hosts {
		if !strings.HasPrefix(image, o.From) {
			continue
		}
		return OnHost(image, o.To)
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
