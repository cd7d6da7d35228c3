package conformance

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestQuick(t *testing.T) {
	cases, err := Read(results)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Run("When a spec is one of the quick ones it should be one of the suite's, and have passed", func(t *testing.T) {
		g := NewWithT(t)
		groups := map[string]bool{}
		for _, n := range quick {
			found := false
			for _, c := range cases {
				if strings.Contains(c.Name, n) {
					found = true
					groups[Group(c.Name)] = true
					g.Expect(c.Failure+c.Skipped).To(BeEmpty(), c.Name)
				}
			}
			g.Expect(found).To(BeTrue(), "no spec has %q in its name", n)
		}
		for _, c := range cases {
			if group := Group(c.Name); group != "sig-architecture" { // its only spec asks for two nodes
				g.Expect(groups).To(HaveKey(group))
			}
		}
	})
}
