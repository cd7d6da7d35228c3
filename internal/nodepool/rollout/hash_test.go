package rollout_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/nodepool/rollout"
)

var example = rollout.Inputs{Version: "1.36.3", Config: "kind: MachineConfig", PullSecret: "pull", TrustBundle: "ca", Global: `{"fips":true}`, OSStream: "rhel-10"}

func TestHash(t *testing.T) {
	t.Run("When this product is upgraded it should keep the hashes, or every worker would be replaced", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(example.Hash()).To(Equal("23c57645"))
		g.Expect(example.ConfigHash()).To(Equal("b8294a4a"))
		g.Expect(rollout.Inputs{Version: "1.36.3", PullSecret: "pull"}.Hash()).To(Equal("75b03a25"))
	})
	t.Run("When only the version changes it should change the one and not the other", func(t *testing.T) {
		g := NewWithT(t)
		next := example
		next.Version = "1.36.4"
		g.Expect(next.Hash()).NotTo(Equal(example.Hash()))
		g.Expect(next.ConfigHash()).To(Equal(example.ConfigHash()))
	})
	for name, change := range map[string]func(*rollout.Inputs){
		"the configuration":    func(in *rollout.Inputs) { in.Config += "x" },
		"the pull secret":      func(in *rollout.Inputs) { in.PullSecret = "other" },
		"the trust bundle":     func(in *rollout.Inputs) { in.TrustBundle = "" },
		"cluster-wide setting": func(in *rollout.Inputs) { in.Global = "" },
		"the operating system": func(in *rollout.Inputs) { in.OSStream = "" },
	} {
		t.Run("When "+name+" changes it should change both", func(t *testing.T) {
			g := NewWithT(t)
			next := example
			change(&next)
			g.Expect(next.Hash()).NotTo(Equal(example.Hash()))
			g.Expect(next.ConfigHash()).NotTo(Equal(example.ConfigHash()))
		})
	}
}

func TestHashProperties(t *testing.T) {
	t.Run("When text moves from one input to another it should change the hash", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.StringMatching(`[a-z]{2,12}`).Draw(t, "text")
			at := rapid.IntRange(1, len(text)-1).Draw(t, "at")
			a := rollout.Inputs{Config: text[:at], PullSecret: text[at:]}
			b := rollout.Inputs{Config: text, PullSecret: ""}
			c := rollout.Inputs{PullSecret: text[:at], TrustBundle: text[at:]}
			if a.Hash() == b.Hash() || a.Hash() == c.Hash() || b.Hash() == c.Hash() {
				t.Fatalf("%q: equal hashes", text)
			}
		})
	})
}
