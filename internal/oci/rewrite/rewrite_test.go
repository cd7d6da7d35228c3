package rewrite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/oci/rewrite"
)

func TestParseOverrides(t *testing.T) {
	g := NewWithT(t)
	got, err := rewrite.ParseOverrides("quay.io=a/quay, quay.io/org=b,")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal([]rewrite.Override{{Source: "quay.io", To: "a/quay"}, {Source: "quay.io/org", To: "b"}}))
	g.Expect(rewrite.FormatOverrides(got)).To(Equal("quay.io=a/quay,quay.io/org=b"))
	g.Expect(rewrite.ParseOverrides("=")).To(BeEmpty(), "When there are none it should take the published spelling")
	for _, bad := range []string{"a", "=b", "a=", "a=b,c"} {
		_, err := rewrite.ParseOverrides(bad)
		g.Expect(err).To(MatchError(HaveSuffix("write it as source=destination")), bad)
	}
}

func TestOverrides(t *testing.T) {
	overrides := []rewrite.Override{{Source: "quay.io", To: "mirror/quay"}, {Source: "quay.io/org", To: "mirror.example/org"}, {Source: "mirror", To: "loop"}}
	for name, tc := range map[string]struct{ image, under, prefix string }{
		"When several fit the longest should win":                   {"quay.io/org/app:v1", "mirror.example/org/app:v1", "mirror.example/org/app:v1"},
		"When a component only begins alike only a prefix should":   {"quay.io/organization:v1", "mirror/quay/organization:v1", "mirror.example/organization:v1"},
		"When the source ends at a digest it should be replaced":    {"quay.io/org@sha256:1", "mirror.example/org@sha256:1", "mirror.example/org@sha256:1"},
		"When nothing fits the image should stay":                   {"ghcr.io/a", "ghcr.io/a", "ghcr.io/a"},
		"When the result fits another one it should not be changed": {"quay.io/x", "mirror/quay/x", "mirror/quay/x"},
		"When the image is the source it should be the destination": {"quay.io", "mirror/quay", "mirror/quay"},
		"When a name merely begins with a source's only a prefix":   {"quay.iox/a", "quay.iox/a", "mirror/quayx/a"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(rewrite.Under(tc.image, overrides)).To(Equal(tc.under))
			g.Expect(rewrite.Prefix(tc.image, overrides)).To(Equal(tc.prefix))
		})
	}
}

// TestProperties holds for whatever overrides and mirrors there are.
func TestProperties(t *testing.T) {
	source := rapid.SampledFrom([]string{"quay.io", "quay.io/", "quay.io/org", "quay.io/org/app", "ghcr.io", "quay"})
	image := rapid.SampledFrom([]string{"quay.io/org/app:v1", "quay.io/organization/app@sha256:1", "ghcr.io/a", "quay.io"})
	rapid.Check(t, func(rt *rapid.T) {
		var overrides []rewrite.Override
		var mirrors []rewrite.Mirror
		for i := range rapid.IntRange(0, 5).Draw(rt, "overrides") {
			overrides = append(overrides, rewrite.Override{Source: source.Draw(rt, fmt.Sprint("source", i)), To: fmt.Sprint("to", i)})
		}
		for i := range rapid.IntRange(0, 5).Draw(rt, "mirrors") {
			m := rewrite.Mirror{Source: source.Draw(rt, fmt.Sprint("mirrored", i))}
			for j := range rapid.IntRange(0, 8).Draw(rt, fmt.Sprint("count", i)) {
				m.Mirrors = append(m.Mirrors, fmt.Sprint("m", i, "-", j%5))
			}
			mirrors = append(mirrors, m)
		}
		img := image.Draw(rt, "image")

		slices.SortFunc(overrides, func(a, b rewrite.Override) int { return strings.Compare(a.Source, b.Source) })
		overrides = slices.CompactFunc(overrides, func(a, b rewrite.Override) bool { return a.Source == b.Source })
		shuffled := rapid.Permutation(overrides).Draw(rt, "order")
		if rewrite.Under(img, overrides) != rewrite.Under(img, shuffled) || rewrite.Prefix(img, overrides) != rewrite.Prefix(img, shuffled) {
			rt.Fatal("the order of overrides matters")
		}
		if parsed, err := rewrite.ParseOverrides(rewrite.FormatOverrides(overrides)); err != nil || !slices.Equal(parsed, overrides) {
			rt.Fatalf("%v came back as %v: %v", overrides, parsed, err)
		}
		refs := rewrite.Candidates(img, mirrors)
		if len(refs) > rewrite.MaxCandidates || refs[len(refs)-1] != img {
			rt.Fatalf("%v does not end with the image, or is too long", refs)
		}
		if unique := slices.Compact(slices.Sorted(slices.Values(refs))); len(unique) != len(refs) {
			rt.Fatalf("%v has a reference twice", refs)
		}
	})
}
