package nodepool

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/rolls"
)

func TestRollNote(t *testing.T) {
	noteOf := func(p plan) (rolls.Note, bool) { return rolls.Parse(p.annotations[hyperv1.NodePoolRollsAnnotation]) }
	obs := configured(example(t), "a")
	first := planFor(obs, noon, "token-a")
	note, ok := noteOf(first)
	t.Run("When machines are made first it should note what from, and tell of no replacement", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(ok).To(BeTrue())
		g.Expect(note.Rolls).To(BeEmpty())
		g.Expect(note.Inputs).To(And(HaveKeyWithValue("release", "1.36.3"), HaveKey(`spec.config ConfigMap "tuning"`)))
	})
	t.Run("When nothing changes it should write nothing", func(t *testing.T) {
		p := planFor(settled(obs, first), noon.Add(time.Hour), "unused")
		NewWithT(t).Expect(p.annotations).NotTo(HaveKey(hyperv1.NodePoolRollsAnnotation))
	})
	t.Run("When the configuration changes it should name it, in the pass that replaces machines and not before", func(t *testing.T) {
		g := NewWithT(t)
		rest := settled(obs, first)
		held := planFor(configured(rest, "b"), noon, "token-b")
		g.Expect(held.annotations).NotTo(HaveKey(hyperv1.NodePoolRollsAnnotation), "the ignition server has not seen it")
		p := planFor(settled(configured(rest, "b"), held), noon.Add(time.Minute), "unused")
		note, ok := noteOf(p)
		g.Expect(ok).To(BeTrue())
		g.Expect(note.Rolls).To(HaveLen(1))
		g.Expect(note.Rolls[0].At).To(Equal(noon.Add(time.Minute)))
		g.Expect(note.Rolls[0].Changes).To(ConsistOf(MatchRegexp(`^spec.config ConfigMap "tuning": [0-9a-f]{12} → [0-9a-f]{12}$`)))
	})
	t.Run("When the release changes it should say from which to which", func(t *testing.T) {
		g := NewWithT(t)
		next := settled(obs, first)
		next.release = exampleRelease("1.36.4")
		held := planFor(next, noon, "token-b")
		p := planFor(settled(next, held), noon, "unused")
		note, _ := noteOf(p)
		g.Expect(note.Rolls).To(HaveLen(1))
		g.Expect(note.Rolls[0].Changes).To(ContainElement("release: 1.36.3 → 1.36.4"))
	})
}
