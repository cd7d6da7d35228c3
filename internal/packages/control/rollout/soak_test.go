package rollout

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// TestSoak is about what comes between a group that is done and the one that is next.
func TestSoak(t *testing.T) {
	const soak = 10 * time.Minute
	rests := func(ago time.Duration) func(*Package) {
		return func(p *Package) { p.Current, p.SettledAt = true, noon.Add(-ago) }
	}
	for name, tc := range map[string]struct {
		between func(*fleet)
		// left is how long nobody of the last group is changed, and group whose time that is.
		left  time.Duration
		group string
	}{
		"When the group in between sleeps the one before it should soak all the same": {
			between: func(f *fleet) { f.sleep("b", true) }, left: 6 * time.Minute, group: "x"},
		"When the clusters of the group in between have no Packages the one before it should soak all the same": {
			between: func(f *fleet) {
				f.in.Clusters[1].Unready = "is not Available"
				delete(f.in.Packages, "ns-b")
			}, left: 6 * time.Minute, group: "x"},
		"When the clusters of the group in between are being deleted the one before it should soak all the same": {
			between: func(f *fleet) {
				c := &f.in.Clusters[1]
				c.Unready, c.Closed, c.Leaving = "is being deleted", true, true
			}, left: 6 * time.Minute, group: "x"},
		"When the group in between had the template long ago the one before it should soak all the same": {
			between: func(f *fleet) { f.set("b", rests(time.Hour)) }, left: 6 * time.Minute, group: "y"},
		"When the group in between came to rest last its time should count": {
			between: func(f *fleet) { f.set("b", rests(time.Minute)) }, left: 9 * time.Minute, group: "y"},
		"When nobody has come to rest since longer it should go on": {
			between: func(f *fleet) {
				f.set("a", rests(time.Hour))
				f.sleep("b", true)
			}},
		"When all before sleep there should be nothing to wait for": {
			between: func(f *fleet) {
				f.sleep("a", true)
				f.sleep("b", true)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFleet(Settings{MaxUnavailable: 1, Partitioned: true, Options: Options{Soak: soak}}, "a=x", "b=y", "c=z")
			f.template()
			f.set("a", rests(4*time.Minute))
			tc.between(f)
			p := Make(f.in, noon)
			if tc.left == 0 {
				g.Expect(applied(p)).To(Equal([]string{"c"}))
				g.Expect(p.Soaks).To(BeFalse())
				return
			}
			g.Expect(p.Apply).To(BeEmpty())
			g.Expect(p.Soaks).To(BeTrue())
			g.Expect(p.Again).To(Equal(tc.left))
			g.Expect(p.Group).To(Equal(tc.group))
			last := p.Decisions[len(p.Decisions)-1]
			g.Expect(last.Reason).To(Equal("group " + tc.group + " soaks for another " + tc.left.String()))
		})
	}
}

// TestCompleted is about a Package that fails after the whole fleet was up with the template.
func TestCompleted(t *testing.T) {
	for _, on := range []OnFailure{ReturnCluster, ReturnGroup} {
		t.Run("When a template was completed before and one fails with it, it should be held: "+string(on), func(t *testing.T) {
			g := NewWithT(t)
			f := newFleet(Settings{MaxUnavailable: 2, Completed: true, Options: Options{Deadline: time.Minute, OnFailure: on}}, "a", "b")
			f.down("a")
			f.set("a", func(p *Package) { p.AppliedAt = noon.Add(-2 * time.Minute) })
			f.in.Processing = []packagesv1.HostedClusterPackageRefStatus{{UID: "uid-a", Namespace: "ns-a"}}
			p := Make(f.in, noon)
			g.Expect(p.Apply).To(BeEmpty())
			g.Expect(p.Decisions[0]).To(And(HaveField("Action", Wait), HaveField("Reason", ContainSubstring("this template was completed before"))))
			g.Expect(p.Decisions[1].Action).To(Equal(Done))
		})
	}
}
