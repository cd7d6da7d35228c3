package render

import (
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/gobwas/glob"
	. "github.com/onsi/gomega"
)

// Why there are two libraries of patterns: what packages say with each means something else with the other.
func TestPatternsOfTwoKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern, file       string
		getFileGlob, filter bool
	}{
		"When a pattern begins with any folder, a filter should select a file at the top":         {"**/a.yaml", "a.yaml", false, true},
		"When a pattern has letters beside two stars, getFileGlob should select files in folders": {"a**", "a/b.yaml", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(glob.MustCompile(tc.pattern, '/').Match(tc.file)).To(Equal(tc.getFileGlob))
			g.Expect(doublestar.MatchUnvalidated(tc.pattern, tc.file)).To(Equal(tc.filter))
		})
	}
}
