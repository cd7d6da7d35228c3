package hostedclusterpackage

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/control/rollout"
)

// returning asks for a return of whole groups after ten minutes.
func returning(p *packagesv1.HostedClusterPackage) {
	p.Annotations = map[string]string{packagesv1.RolloutDeadlineAnnotation: "10m", packagesv1.RolloutOnFailureAnnotation: "return-group"}
}

// TestCompletedTemplate is about failures long after the whole fleet was up with a template.
func TestCompletedTemplate(t *testing.T) {
	// begin gives clusters a template, and lets them come up with it.
	begin := func(w *world, r *Reconciler, image string, clusters ...string) {
		w.Helper()
		w.template(image)
		w.pass(r)
		for _, name := range clusters {
			w.g.Expect(w.image(name)).To(HaveSuffix(":" + image))
			w.settle(name, true)
			w.pass(r)
		}
	}
	images := func(w *world, clusters ...string) (out []string) {
		w.Helper()
		for _, name := range clusters {
			out = append(out, w.image(name)[len("registry.example/addon:"):])
		}
		return out
	}
	// foretold is what a forecast says of a cluster.
	foretold := func(w *world, name string, at time.Time) string {
		w.Helper()
		in, err := Observe(w.Context(), w.c, w.read())
		w.g.Expect(err).NotTo(HaveOccurred())
		for _, d := range rollout.Make(in, at).Decisions {
			if d.Cluster.Name == name {
				return string(d.Action) + ": " + d.Reason
			}
		}
		return ""
	}
	const held = "Wait: it was updated, and is not up for longer than 10m0s; a rollout of this template was completed before, so it is held here and nothing is returned: " +
		"find out what is different now"

	t.Run("When a cluster wakes after its template was completed, and fails with it, it should be held, and its group stay as it is", func(t *testing.T) {
		w := newWorld(t, func(p *packagesv1.HostedClusterPackage) {
			returning(p)
			p.Spec.Strategy.RollingUpgrade.MaxUnavailable = 3 // a return would take them all at once
		}, "a", "b", "x")
		clk := clocktesting.NewFakePassiveClock(time.Now())
		r := w.reconciler(w.c)
		r.Clock = clk
		w.pass(r)
		for _, name := range []string{"a", "b", "x"} {
			w.settle(name, true)
		}
		w.pass(r)
		w.sleeps("x", true)
		begin(w, r, "v2", "a", "b")
		w.g.Expect(images(w, "a", "b", "x")).To(Equal([]string{"v2", "v2", "v1"}))
		w.g.Expect(w.condition("Progressing")).To(HavePrefix("False AllPackagesProgressed"))

		w.sleeps("x", false)
		w.pass(r)
		w.g.Expect(images(w, "x")).To(Equal([]string{"v2"}))
		w.settle("x", false)
		late := time.Now().Add(11 * time.Minute)
		clk.SetTime(late)
		another := w.reconciler(w.c) // reads the history anew
		another.Clock = clk
		for _, r := range []*Reconciler{r, another} {
			w.pass(r)
			w.g.Expect(images(w, "a", "b", "x")).To(Equal([]string{"v2", "v2", "v2"}))
		}
		w.g.Expect(foretold(w, "x", late)).To(Equal(held))
		w.g.Expect(foretold(w, "a", late)).To(HavePrefix("Done"))
	})

	t.Run("When the environment changes after a template was completed, and one fails with that, it should be held", func(t *testing.T) {
		w := newWorld(t, returning, "a", "b")
		clk := clocktesting.NewFakePassiveClock(time.Now())
		r := w.reconciler(w.c)
		r.Clock = clk
		w.pass(r)
		for _, name := range []string{"a", "b"} {
			w.settle(name, true)
		}
		w.pass(r)
		begin(w, r, "v2", "a", "b")
		w.outdated("a", "newer")
		w.outdated("b", "newer")
		w.pass(r)
		w.g.Expect(w.told("a", "b")).To(Equal([]string{"newer", ""}))
		w.outdated("a", "")
		w.settle("a", false)
		late := time.Now().Add(11 * time.Minute)
		clk.SetTime(late)
		w.pass(r)
		w.g.Expect(images(w, "a", "b")).To(Equal([]string{"v2", "v2"}))
		w.g.Expect(w.told("a", "b")).To(Equal([]string{"newer", ""}), "the environment goes no further, either")
		w.g.Expect(foretold(w, "a", late)).To(Equal(held))
	})

	t.Run("When a template that was completed comes back, and fails, it should return to the one that was completed last", func(t *testing.T) {
		w := newWorld(t, returning, "a")
		clk := clocktesting.NewFakePassiveClock(time.Now())
		r := w.reconciler(w.c)
		r.Clock = clk
		w.pass(r)
		w.settle("a", true)
		w.pass(r)
		begin(w, r, "v2", "a")
		w.template("v1")
		in, err := Observe(t.Context(), w.c, w.read())
		w.g.Expect(err).NotTo(HaveOccurred())
		w.g.Expect(in.Settings.HasGood).To(BeTrue(), "a forecast knows before it is on record")
		w.g.Expect(in.Settings.Completed).To(BeFalse())
		w.pass(r)
		w.g.Expect(images(w, "a")).To(Equal([]string{"v1"}))
		w.settle("a", false)
		clk.SetTime(time.Now().Add(11 * time.Minute))
		w.pass(r)
		w.g.Expect(images(w, "a")).To(Equal([]string{"v2"}))
	})
}
