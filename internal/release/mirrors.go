package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Override says that images under Source are to be had under To. It is what --registry-overrides a=b holds.
type Override struct{ Source, To string }

// ParseOverrides reads "a=b,c=d".
func ParseOverrides(s string) ([]Override, error) {
	var overrides []Override
	for pair := range strings.SplitSeq(s, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		source, to, ok := strings.Cut(pair, "=")
		if !ok || source == "" || to == "" {
			return nil, fmt.Errorf("parsing registry override %q: write it as source=destination", pair)
		}
		overrides = append(overrides, Override{Source: source, To: to})
	}
	return overrides, nil
}

// FormatOverrides is the inverse of ParseOverrides.
func FormatOverrides(overrides []Override) string {
	pairs := make([]string, 0, len(overrides))
	for _, o := range overrides {
		pairs = append(pairs, o.Source+"="+o.To)
	}
	return strings.Join(pairs, ",")
}

// Mirror lists where images under Source may be found as well, in the order to try. It is an entry of spec.imageContentSources.
type Mirror struct {
	Source  string
	Mirrors []string
}

// under tells whether image is source or lies below it; a prefix counts only where a component of the reference ends.
func under(image, source string) bool {
	rest, ok := strings.CutPrefix(image, source)
	return ok && (rest == "" || strings.HasSuffix(source, "/") || strings.ContainsRune("/:@", rune(rest[0])))
}

// rewrite applies the override with the longest source that fits; others are not tried on the result.
func rewrite(image string, overrides []Override) string {
	best := Override{}
	for _, o := range overrides {
		if under(image, o.Source) && len(o.Source) > len(best.Source) {
			best = o
		}
	}
	if best.Source == "" {
		return image
	}
	return best.To + strings.TrimPrefix(image, best.Source)
}

// maxCandidates is how many references are tried for an image. Tenants may name 255 sources with 255 mirrors each.
const maxCandidates = 16

// candidates lists the references to try for image: the first of its mirrors, those of the longest source first, then image itself.
func candidates(image string, mirrors []Mirror) []string {
	sorted := slices.SortedStableFunc(slices.Values(mirrors), func(a, b Mirror) int { return cmp.Compare(len(b.Source), len(a.Source)) })
	var refs []string
	seen := map[string]bool{image: true}
	for _, m := range sorted {
		if !under(image, m.Source) {
			continue
		}
		for _, to := range m.Mirrors {
			ref := to + strings.TrimPrefix(image, m.Source)
			if seen[ref] {
				continue
			}
			if len(refs) == maxCandidates-1 {
				return append(refs, image)
			}
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	return append(refs, image)
}

// ProviderFunc makes a function a Provider.
type ProviderFunc func(ctx context.Context, image string, pullSecret []byte) (*Release, error)

// Lookup implements Provider.
func (f ProviderFunc) Lookup(ctx context.Context, image string, pullSecret []byte) (*Release, error) {
	return f(ctx, image, pullSecret)
}

// WithStatic adds those of tags that a release lacks. What the payload holds itself stays, so that an operator upgrade rolls nothing.
func WithStatic(p Provider, tags map[string]string) Provider {
	return decorate(p, func(r *Release) {
		for tag, image := range tags {
			if _, ok := r.ImageFor(tag); !ok && image != "" {
				r.Images[tag] = image
			}
		}
	})
}

// WithImageOverrides replaces the image of each tag in tags, present or not: annotation hypershift.openshift.io/image-overrides.
func WithImageOverrides(p Provider, tags map[string]string) Provider {
	return decorate(p, func(r *Release) {
		for tag, image := range tags {
			if image != "" {
				r.Images[tag] = image
			}
		}
	})
}

func decorate(p Provider, change func(*Release)) Provider {
	return ProviderFunc(func(ctx context.Context, image string, pullSecret []byte) (*Release, error) {
		r, err := p.Lookup(ctx, image, pullSecret)
		if err != nil {
			return nil, err
		}
		r = r.clone() // r is shared with the cache
		change(r)
		return r, nil
	})
}
