// Package rewrite says where an image is to be had: by overrides, which replace a part of its reference, and by mirrors, which are tried before it.
package rewrite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Override says that images under Source are to be had under To. It is what --registry-overrides a=b holds.
type Override struct{ Source, To string }

// ParseOverrides reads "a=b,c=d". The order stays. "=" alone is how manifests of the published operators write that there are none.
func ParseOverrides(s string) ([]Override, error) {
	var overrides []Override
	if s == "=" {
		return nil, nil
	}
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

// Under applies the override with the longest source that image is or lies below; others are not tried on the result. A source counts only where a
// component of the reference ends: quay.io/org is not for quay.io/organization.
func Under(image string, overrides []Override) string {
	o, _ := longest(image, overrides, under)
	return o.To + strings.TrimPrefix(image, o.Source)
}

// Prefix applies the override with the longest source that image begins with, wherever that ends.
func Prefix(image string, overrides []Override) string {
	o, _ := longest(image, overrides, strings.HasPrefix)
	return o.To + strings.TrimPrefix(image, o.Source)
}

// Match is the override with the longest source that image begins with, wherever that ends.
func Match(image string, overrides []Override) (Override, bool) {
	return longest(image, overrides, strings.HasPrefix)
}

// longest is the override with the longest source that fits, of equals the first.
func longest(image string, overrides []Override, fits func(image, source string) bool) (best Override, found bool) {
	for _, o := range overrides {
		if fits(image, o.Source) && len(o.Source) > len(best.Source) {
			best, found = o, true
		}
	}
	return best, found
}

// under tells whether image is source or lies below it.
func under(image, source string) bool {
	rest, ok := strings.CutPrefix(image, source)
	return ok && (rest == "" || strings.HasSuffix(source, "/") || strings.ContainsRune("/:@", rune(rest[0])))
}

// Mirror lists where images under Source may be found as well, in the order to try. It is an entry of spec.imageContentSources.
type Mirror struct {
	Source  string
	Mirrors []string
}

// MaxCandidates is how many references are tried for an image. Tenants may name 255 sources with 255 mirrors each.
const MaxCandidates = 16

// Candidates lists the references to try for image, each once: the first of its mirrors, those of the longest source first, then image itself.
func Candidates(image string, mirrors []Mirror) []string {
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
			if len(refs) == MaxCandidates-1 {
				return append(refs, image)
			}
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	return append(refs, image)
}
