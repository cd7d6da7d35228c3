package release

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestNodePoolVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		check NodePoolCheck
		says  string // empty: allowed
	}{
		"When nodes keep to the control plane it should be allowed":             {check: NodePoolCheck{Target: "1.36.3", ControlPlane: "1.36.3"}},
		"When nodes are a minor behind it should be allowed":                    {check: NodePoolCheck{Target: "1.35.4", ControlPlane: "1.36.3"}},
		"When nodes are ahead it should be refused":                             {check: NodePoolCheck{Target: "1.37.0", ControlPlane: "1.36.3"}, says: "newer than the control plane"},
		"When nodes go back a minor it should be refused":                       {check: NodePoolCheck{Target: "1.35.4", Current: "1.36.3", ControlPlane: "1.36.3"}, says: "downgrading"},
		"When an OpenShift pool meets Kubernetes it should be refused":          {check: NodePoolCheck{Target: "4.20.0", ControlPlane: "1.36.3"}, says: "can't be mixed"},
		"When checks are skipped it should be allowed":                          {check: NodePoolCheck{Target: "1.37.0", ControlPlane: "1.36.3", Skip: true}},
		"When a version is none it should be refused, even with the checks off": {check: NodePoolCheck{Target: "latest", Skip: true}, says: "parsing version"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckNodePoolVersion(tc.check)
			if tc.says == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
	t.Run("When nodes are three minors behind it should be the most that is supported", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(CheckSkew("1.33.0", "1.36.3")).To(Succeed())
		g.Expect(CheckSkew("1.32.0", "1.36.3")).To(MatchError(ContainSubstring("4 minor versions behind")))
		g.Expect(CheckSkew("1.36.4", "1.36.3")).To(MatchError(ContainSubstring("newer")))
		g.Expect(CheckSkew("4.21.0", "5.1.0")).To(Succeed(), "5.1 comes three after 4.21")
	})
}
