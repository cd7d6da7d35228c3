package rollout

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// fleet is a small world that is changed between passes, without time or caches.
type fleet struct{ in Observed }

// newFleet makes clusters from "name=label", each with an available Package on the template.
func newFleet(s Settings, clusters ...string) *fleet {
	s.Name, s.Generation = "addon", 1
	f := &fleet{Observed{Settings: s, Packages: map[string]Package{}}}
	for _, c := range clusters {
		name, label := c, ""
		for i := range c {
			if c[i] == '=' {
				name, label = c[:i], c[i+1:]
			}
		}
		f.in.Clusters = append(f.in.Clusters, Cluster{Name: types.NamespacedName{Namespace: "ns", Name: name}, Namespace: "ns-" + name, Label: label})
		f.in.Packages["ns-"+name] = Package{UID: types.UID("uid-" + name), Namespace: "ns-" + name, Current: true, Available: true, Progressed: true}
	}
	return f
}

func (f *fleet) set(name string, change func(*Package)) {
	p := f.in.Packages["ns-"+name]
	change(&p)
	f.in.Packages["ns-"+name] = p
}

func (f *fleet) up(name string) {
	f.set(name, func(p *Package) { p.Available, p.Progressed = true, true })
}
func (f *fleet) down(name string) { f.set(name, func(p *Package) { p.Available = false }) }

// template is changed, so that nobody has it.
func (f *fleet) template() {
	for ns, p := range f.in.Packages {
		p.Current, p.Returned = false, false
		f.in.Packages[ns] = p
	}
}

// pass carries a plan out; what was changed is down until up is called.
func (f *fleet) pass() Plan {
	plan := Make(f.in, noon)
	f.in.Processing = plan.Processing
	for _, c := range plan.Apply {
		p := f.in.Packages[c.Namespace]
		p.Current, p.Returned, p.Available, p.Progressed = c.Version == Template, c.Version == LastGood, false, false
		f.in.Packages[c.Namespace] = p
	}
	return plan
}

func applied(p Plan) []string {
	out := []string{}
	for _, c := range p.Apply {
		out = append(out, c.Cluster.Name)
	}
	return out
}

func processing(p Plan) []string {
	out := []string{}
	for _, r := range p.Processing {
		out = append(out, string(r.UID[len("uid-"):]))
	}
	return out
}

// counts reads as the published examples do: updated/available/total.
func counts(p Plan) string {
	s := p.Status
	return fmt.Sprintf("%d/%d/%d", s.UpdatedPackages, s.AvailablePackages, s.TotalPackages)
}

func TestWorkedExample(t *testing.T) {
	t.Run("When a bad version breaks a cluster it should stop there, reach it first with the fix, and go on", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1, Tolerated: 1, Partitioned: true, Static: []string{"early", "late"}}, "e1=early", "e2=early", "l1=late", "u1")
		step := func(apply, inFlight []string, updated string, available metav1.ConditionStatus) Plan {
			t.Helper()
			p := f.pass()
			g.Expect(applied(p)).To(Equal(apply))
			g.Expect(processing(p)).To(Equal(inFlight))
			now := Make(f.in, noon)
			g.Expect(counts(now)).To(Equal(updated))
			g.Expect(now.Status.Conditions[0].Status).To(Equal(available))
			return now
		}
		none := []string{}
		step(none, none, "4/4/4", metav1.ConditionTrue)
		f.template()
		step([]string{"e1"}, []string{"e1"}, "1/3/4", metav1.ConditionTrue)
		f.up("e1")
		step([]string{"e2"}, []string{"e2"}, "2/3/4", metav1.ConditionTrue)
		f.down("l1") // by itself
		p := step(none, []string{"e2"}, "2/2/4", metav1.ConditionFalse)
		g.Expect(p.Status.Conditions[0].Reason).To(Equal("NotEnoughPackagesAvailable"))
		f.template() // the fix
		step([]string{"e2"}, []string{"e2"}, "1/2/4", metav1.ConditionFalse)
		f.up("e2")
		p = step(none, none, "1/3/4", metav1.ConditionTrue)
		g.Expect(p.Status.Conditions[1].Message).To(Equal("4/4 packages progressed. Group early is current. Unavailable, which uses up maxUnavailable 1: ns/l1."))
		f.up("l1")
		step([]string{"e1"}, []string{"e1"}, "2/3/4", metav1.ConditionTrue)
		f.up("e1")
		step([]string{"l1"}, []string{"l1"}, "3/3/4", metav1.ConditionTrue)
		f.up("l1")
		step([]string{"u1"}, []string{"u1"}, "4/3/4", metav1.ConditionTrue)
		f.up("u1")
		p = step(none, none, "4/4/4", metav1.ConditionTrue)
		g.Expect(p.Status.Conditions).To(HaveExactElements(
			HaveField("Message", "4/4 packages available."), HaveField("Message", "4/4 packages progressed."), HaveField("Message", "0/4 packages paused.")))
		g.Expect(p.Status.Conditions[1].Reason).To(Equal("AllPackagesProgressed"))
		g.Expect(p.Status.Partitions).To(HaveExactElements(
			packagesv1.HostedClusterPackagePartitionStatus{Name: "early", HostedClusterPackageCountsStatus: same(2)},
			packagesv1.HostedClusterPackagePartitionStatus{Name: "late", HostedClusterPackageCountsStatus: same(1)},
			packagesv1.HostedClusterPackagePartitionStatus{Name: "unknown", HostedClusterPackageCountsStatus: same(1)}))
	})
}

func same(n int32) packagesv1.HostedClusterPackageCountsStatus {
	return packagesv1.HostedClusterPackageCountsStatus{ObservedGeneration: 1, AvailablePackages: n, ProgressedPackages: n, UpdatedPackages: n, TotalPackages: n}
}

func TestSelection(t *testing.T) {
	five := []string{"a", "b", "c", "d", "e"}
	for name, c := range map[string]struct {
		settings Settings
		clusters []string
		before   func(*fleet)
		want     []string
	}{
		"When the strategy is instant it should take all, whatever the groups and who is down": {
			Settings{MaxUnavailable: Unlimited, Partitioned: true}, []string{"a=x", "b=y", "c"}, func(f *fleet) { f.down("b") }, []string{"a", "b", "c"}},
		"When two may be down it should take the first two":                       {Settings{MaxUnavailable: 2}, five, nil, []string{"a", "b"}},
		"When one is down already it should go first, and leave one slot":         {Settings{MaxUnavailable: 2}, five, func(f *fleet) { f.down("d") }, []string{"d", "a"}},
		"When as many are down as may be it should take those alone":              {Settings{MaxUnavailable: 2}, five, func(f *fleet) { f.down("d"); f.down("e") }, []string{"d", "e"}},
		"When more are down than may be it should still reach them":               {Settings{MaxUnavailable: 1}, five, func(f *fleet) { f.down("d"); f.down("e") }, []string{"d", "e"}},
		"When a Package is missing it should count as down":                       {Settings{MaxUnavailable: 1}, five, func(f *fleet) { delete(f.in.Packages, "ns-e") }, []string{}},
		"When groups are sorted it should begin with the first":                   {Settings{MaxUnavailable: 9, Partitioned: true}, []string{"a=z", "b=x", "c=x", "d"}, nil, []string{"b", "c"}},
		"When a value is not listed it should be unknown, and wait":               {Settings{MaxUnavailable: 9, Partitioned: true, Static: []string{"z"}}, []string{"a=x", "b=z", "c"}, nil, []string{"b"}},
		"When the star is first it should begin with unknown ones":                {Settings{MaxUnavailable: 9, Partitioned: true, Static: []string{"*", "z"}}, []string{"a=x", "b=z", "c"}, nil, []string{"a", "c"}},
		"When one of a later group is down by itself it should wait for its turn": {Settings{MaxUnavailable: 2, Partitioned: true}, []string{"a=x", "b=y"}, func(f *fleet) { f.down("b") }, []string{"a"}},
		"When somebody paused a Package it should pass it over":                   {Settings{MaxUnavailable: 1}, five, func(f *fleet) { f.set("a", func(p *Package) { p.Held = true }) }, []string{"b"}},
		"When a cluster is not Available and its Package is down it should count, and get the template first": {Settings{MaxUnavailable: 1}, five, func(f *fleet) {
			f.in.Clusters[0].Unready = "is not Available"
			f.down("a")
		}, []string{"a"}},
		"When a cluster is not Available and has no Package it should hold nobody": {Settings{MaxUnavailable: 1, Partitioned: true}, []string{"a=x", "b=y"}, func(f *fleet) {
			f.in.Clusters[0].Unready = "is not Available"
			delete(f.in.Packages, "ns-a")
		}, []string{"b"}},
		"When a cluster is not Available and its Package is up it should come last": {Settings{MaxUnavailable: 9}, five, func(f *fleet) {
			f.in.Clusters[0].Unready = "is not Available"
		}, []string{"b", "c", "d", "e", "a"}},
		"When nothing can be written for a cluster its group should wait for it": {Settings{MaxUnavailable: 9, Partitioned: true}, []string{"a=x", "b=y"}, func(f *fleet) {
			f.in.Clusters[0].Unready, f.in.Clusters[0].Closed = "has no control-plane namespace ns-a", true
		}, []string{}},
		"When a cluster is being deleted nobody should wait for it or count it": {Settings{MaxUnavailable: 1, Partitioned: true}, []string{"a=x", "b=y"}, func(f *fleet) {
			f.in.Clusters[0].Unready, f.in.Clusters[0].Closed, f.in.Clusters[0].Leaving = "is being deleted", true, true
			f.down("a")
		}, []string{"b"}},
		"When a cluster sleeps nobody should wait for it or count it": {Settings{MaxUnavailable: 1, Partitioned: true}, []string{"a=x", "b=y"}, func(f *fleet) {
			f.in.Clusters[0].Unready, f.in.Clusters[0].Closed, f.in.Clusters[0].Asleep = "hibernates", true, true
			f.down("a")
		}, []string{"b"}},
		"When a Package can't be written its slot should go to the next": {Settings{MaxUnavailable: 1}, five, func(f *fleet) {
			f.in.Refused = map[string]string{"ns-a": "somebody owns .spec.image"}
		}, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFleet(c.settings, c.clusters...)
			f.template()
			if c.before != nil {
				c.before(f)
			}
			g.Expect(applied(f.pass())).To(Equal(c.want))
		})
	}
}

func TestFailures(t *testing.T) {
	t.Run("When a later group broke by our hand the fix should reach it first, for it can only get better", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1, Partitioned: true}, "a=x", "b=y")
		f.set("b", func(p *Package) { p.Current = false })
		g.Expect(applied(f.pass())).To(Equal([]string{"b"}))
		f.template()
		g.Expect(applied(f.pass())).To(Equal([]string{"b"}))
		f.up("b")
		g.Expect(applied(f.pass())).To(Equal([]string{"a"}))
	})
	t.Run("When an earlier group is relabelled into or breaks, later ones should wait for it", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 3, Partitioned: true}, "a=x", "b=y", "c=y")
		f.set("b", func(p *Package) { p.Current = false })
		f.set("c", func(p *Package) { p.Current = false })
		f.in.Clusters[2].Label = "x"
		g.Expect(applied(f.pass())).To(Equal([]string{"c"}))
	})
	t.Run("When a deadline passes it should do as asked", func(t *testing.T) {
		for on, want := range map[OnFailure][]Change{
			Hold:          nil,
			ReturnCluster: {{Cluster: types.NamespacedName{Namespace: "ns", Name: "a"}, Namespace: "ns-a", Version: LastGood, UID: "uid-a", Free: true}},
			ReturnGroup: {
				{Cluster: types.NamespacedName{Namespace: "ns", Name: "a"}, Namespace: "ns-a", Version: LastGood, UID: "uid-a", Free: true},
				{Cluster: types.NamespacedName{Namespace: "ns", Name: "b"}, Namespace: "ns-b", Version: LastGood, UID: "uid-b"},
			},
		} {
			g := NewWithT(t)
			f := newFleet(Settings{MaxUnavailable: 2, HasGood: true, Options: Options{Deadline: time.Minute, OnFailure: on}}, "a", "b", "c")
			f.down("a")
			f.set("a", func(p *Package) { p.AppliedAt = noon.Add(-2 * time.Minute) })
			f.set("c", func(p *Package) { p.Current = false })
			f.in.Processing = []packagesv1.HostedClusterPackageRefStatus{{UID: "uid-a", Namespace: "ns-a"}}
			if on == Hold {
				want = []Change{{Cluster: types.NamespacedName{Namespace: "ns", Name: "c"}, Namespace: "ns-c", Version: Template, UID: "uid-c"}}
			} else if on == ReturnCluster {
				want = append(want, Change{Cluster: types.NamespacedName{Namespace: "ns", Name: "c"}, Namespace: "ns-c", Version: Template, UID: "uid-c"})
			}
			g.Expect(Make(f.in, noon).Apply).To(Equal(want), string(on))
		}
	})
	t.Run("When the rollout is paused it should change nothing, and still serve new clusters", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 9, Options: Options{Paused: true}}, "a", "b", "c")
		f.template()
		f.down("b")
		delete(f.in.Packages, "ns-c")
		p := Make(f.in, noon)
		g.Expect(p.Apply).To(BeEmpty())
		g.Expect(p.Create).To(HaveLen(1))
		g.Expect(p.Status.Conditions[1].Message).To(ContainSubstring("The rollout is paused."))
	})
	t.Run("When a group soaks the next one should wait, and know how long", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1, Partitioned: true, Options: Options{Soak: 10 * time.Minute}}, "a=x", "b=y")
		f.set("a", func(p *Package) { p.SettledAt = noon.Add(-4 * time.Minute) })
		f.set("b", func(p *Package) { p.Current = false })
		p := Make(f.in, noon)
		g.Expect(p.Apply).To(BeEmpty())
		g.Expect(p.Again).To(Equal(6 * time.Minute))
		g.Expect(p.Decisions[1].Reason).To(Equal("group x soaks for another 6m0s"))
		f.set("a", func(p *Package) { p.SettledAt = noon.Add(-10 * time.Minute) })
		g.Expect(applied(Make(f.in, noon))).To(Equal([]string{"b"}))
	})
}

func TestUpdating(t *testing.T) {
	f := newFleet(Settings{MaxUnavailable: 1}, "a", "b")
	f.template()
	f.pass()
	f.set("a", func(p *Package) { p.Available = true }) // by the revision before
	t.Run("When a Package is available while its update runs it should hold its slot and be named", func(t *testing.T) {
		g := NewWithT(t)
		plan := f.pass()
		g.Expect(plan.Apply).To(BeEmpty())
		g.Expect(processing(plan)).To(Equal([]string{"a"}))
		g.Expect(plan.Status.Conditions[1].Message).To(Equal("1/2 packages progressed. Being updated: ns/a."))
	})
	t.Run("When a bad template hides behind the revision before a fix should reach it first, in its slot", func(t *testing.T) {
		g := NewWithT(t)
		f.template()
		plan := f.pass()
		g.Expect(applied(plan)).To(Equal([]string{"a"}))
		g.Expect(processing(plan)).To(Equal([]string{"a"}))
		f.up("a")
		g.Expect(applied(f.pass())).To(Equal([]string{"b"}))
	})
}

func TestStatus(t *testing.T) {
	t.Run("When a cluster is not Available and up to date, a finished rollout should say what was published and no more", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1, Tolerated: 1}, "a", "b", "c")
		f.in.Clusters[0].Unready = "is not Available"
		plan := f.pass()
		g.Expect(plan.Status.Conditions).To(HaveExactElements(
			HaveField("Message", "3/3 packages available."), HaveField("Message", "3/3 packages progressed."), HaveField("Message", "0/3 packages paused.")))
		g.Expect(plan.Finished).To(BeTrue())
	})
	t.Run("When a cluster is not Available and has no Package status should say nothing of it", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: Unlimited, Partitioned: true}, "a=x", "b=x", "c=y")
		for _, i := range []int{1, 2} {
			f.in.Clusters[i].Unready = "is not Available"
			delete(f.in.Packages, f.in.Clusters[i].Namespace)
		}
		plan := f.pass()
		g.Expect(plan.Status.Conditions).To(HaveExactElements(
			And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", "1/1 packages available.")),
			And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", "1/1 packages progressed.")), HaveField("Message", "0/1 packages paused.")))
		g.Expect(plan.Status.UnavailablePackages).To(BeZero())
		g.Expect(plan.Finished).To(BeTrue())
		delete(f.in.Packages, "ns-a")
		f.in.Clusters[0].Unready = "is not Available"
		plan = f.pass()
		g.Expect(plan.Status.Conditions[0].Message).To(Equal("0/0 packages available."))
		g.Expect(plan.Finished).To(BeFalse(), "nobody has the template")
	})
	t.Run("When a cluster is not Available and has no Package a rollout that goes on should name it", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1, Tolerated: 1}, "a", "b")
		f.template()
		f.in.Clusters[1].Unready = "is not Available"
		delete(f.in.Packages, "ns-b")
		g.Expect(f.pass().Status.Conditions[1].Message).To(Equal("1/1 packages progressed. Hosted clusters that can't take a package now: ns/b."))
	})
	t.Run("When Packages are down or missing they should be counted, in their group and in all", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1, Tolerated: 1, Partitioned: true}, "a=x", "b=x", "c=y", "d=y")
		f.in.Clusters[0].Unready = "is not Available"
		f.down("a")
		delete(f.in.Packages, "ns-c")
		f.in.Clusters[3].Leaving, f.in.Clusters[3].Closed, f.in.Clusters[3].Unready = true, true, "is being deleted"
		f.down("d")
		status := f.pass().Status
		g.Expect(status.UnavailablePackages).To(Equal(int32(2)))
		g.Expect(counts(Plan{Status: status})).To(Equal("2/1/2"))
		g.Expect(status.Conditions[0].Status).To(Equal(metav1.ConditionFalse))
		g.Expect(status.Partitions).To(HaveExactElements(HaveField("UnavailablePackages", int32(1)), HaveField("UnavailablePackages", int32(1))))
	})
	t.Run("When there is nothing to roll out to, or what has the template is down, a rollout should not be finished", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(newFleet(Settings{MaxUnavailable: 1}).pass().Finished).To(BeFalse())
		f := newFleet(Settings{MaxUnavailable: 1}, "a")
		f.down("a")
		g.Expect(f.pass().Finished).To(BeFalse())
	})
	t.Run("When the template pauses Packages a slot should be free as soon as one is paused", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1}, "a", "b")
		f.template()
		g.Expect(applied(f.pass())).To(Equal([]string{"a"}))
		f.set("a", func(p *Package) { p.Available, p.Paused = true, true })
		g.Expect(applied(f.pass())).To(Equal([]string{"b"}))
	})
	t.Run("When Packages can't be written the message should name them and why", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1}, "a", "b")
		f.template()
		f.in.Refused = map[string]string{"ns-a": "somebody owns .spec.image"}
		g.Expect(f.pass().Status.Conditions[1].Message).To(HavePrefix("2/2 packages progressed. Can't be written, and tried again later: ns/a (somebody owns .spec.image)."))
	})
}

func TestRemoval(t *testing.T) {
	for name, c := range map[string]struct {
		selected, deselected, gone int
		confirmed                  int
		removed, kept              int
	}{
		"When a few are deselected it should remove them":                                {selected: 0, deselected: 2, removed: 2},
		"When less than half are deselected it should remove them":                       {selected: 5, deselected: 5, removed: 5},
		"When most are deselected it should keep them, and remove those that are gone":   {selected: 3, deselected: 4, gone: 6, removed: 6, kept: 4},
		"When nothing matches any more it should keep all":                               {selected: 0, deselected: 50, kept: 50},
		"When somebody confirmed as many it should remove them":                          {selected: 0, deselected: 50, confirmed: 50, removed: 50},
		"When somebody confirmed less it should keep them":                               {selected: 0, deselected: 50, confirmed: 49, kept: 50},
		"When all clusters are gone it should remove everything, and ask for no consent": {selected: 0, gone: 50, removed: 50},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var names []string
			for i := range c.selected {
				names = append(names, fmt.Sprintf("c%d", i))
			}
			f := newFleet(Settings{MaxUnavailable: 1, Options: Options{Remove: c.confirmed}}, names...)
			for i := range c.deselected + c.gone {
				f.in.Orphans = append(f.in.Orphans, Package{Namespace: fmt.Sprintf("ns-o%d", i), Deselected: i < c.deselected})
			}
			plan := f.pass()
			g.Expect(plan.Delete).To(HaveLen(c.removed))
			g.Expect(plan.Kept).To(HaveLen(c.kept))
			if g.Expect(plan.Status.Conditions).To(HaveLen(3 + int(one(c.kept > 0)))); c.kept > 0 {
				g.Expect(plan.Status.Conditions[3].Message).To(ContainSubstring(fmt.Sprintf(`annotation package-operator.run/rollout-remove: "%d"`, c.kept)))
			}
		})
	}
}

func TestDress(t *testing.T) {
	names := func(list []Change) (out []string) {
		for _, c := range list {
			out = append(out, c.Cluster.Name)
		}
		return out
	}
	f := newFleet(Settings{MaxUnavailable: 1, Partitioned: true}, "a=x", "b=y", "c=y")
	f.down("a") // uses the budget up
	for _, name := range []string{"b", "c"} {
		f.set(name, func(p *Package) { p.Unlabelled = true })
	}
	t.Run("When labels are missing it should add them, whatever the group and the budget", func(t *testing.T) {
		g := NewWithT(t)
		plan := f.pass()
		g.Expect(names(plan.Relabel)).To(Equal([]string{"b", "c"}))
		g.Expect(plan.Apply).To(BeEmpty())
		g.Expect(plan.Processing).To(BeEmpty())
	})
	t.Run("When a Package gets the template anyway it should not be written twice", func(t *testing.T) {
		g := NewWithT(t)
		f.up("a")
		f.set("b", func(p *Package) { p.Current = false })
		plan := f.pass()
		g.Expect(applied(plan)).To(Equal([]string{"b"}))
		g.Expect(names(plan.Relabel)).To(Equal([]string{"c"}))
	})
	t.Run("When the rollout is paused it should leave labels, too", func(t *testing.T) {
		f.in.Settings.Options.Paused = true
		NewWithT(t).Expect(f.pass().Relabel).To(BeEmpty())
	})
}

func TestPredict(t *testing.T) {
	t.Run("When nothing fails it should tell the waves and how long they take", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 2, Partitioned: true}, "a=x", "b=x", "c=x", "d=y", "e")
		f.template()
		f.in.Clusters[4].Unready, f.in.Clusters[4].Closed = "is not Available", true
		got := Predict(f.in, Assumptions{PerCluster: 5 * time.Minute}, noon)
		g.Expect(got.Finished).To(BeTrue())
		g.Expect(got.Duration).To(Equal(15 * time.Minute))
		g.Expect(got.Waves).To(HaveLen(3))
		g.Expect(got.Waves[1]).To(Equal(Wave{After: 5 * time.Minute, Group: "x", Clusters: []types.NamespacedName{{Namespace: "ns", Name: "c"}}, Used: 1, Budget: 2}))
		g.Expect(got.Rest).To(HaveExactElements(HaveField("Reason", "the hosted cluster is not Available")))
		g.Expect(f.in.Packages["ns-a"].Current).To(BeFalse(), "a forecast changes nothing")
	})
	t.Run("When a cluster fails it should tell where the rollout stops", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1, Partitioned: true}, "a=x", "b=x", "d=y")
		f.template()
		got := Predict(f.in, Assumptions{PerCluster: time.Minute, Fail: map[types.NamespacedName]bool{{Namespace: "ns", Name: "a"}: true}}, noon)
		g.Expect(got.Finished).To(BeFalse())
		g.Expect(got.Waves).To(HaveLen(1))
		g.Expect(got.Rest).To(HaveLen(3))
	})
}

func TestParseOptions(t *testing.T) {
	t.Run("When annotations are wrong it should name each, and fall back to what is safe", func(t *testing.T) {
		g := NewWithT(t)
		o, err := ParseOptions(map[string]string{packagesv1.RolloutSoakAnnotation: "soon", packagesv1.RolloutOnFailureAnnotation: "return-group"})
		g.Expect(err).To(MatchError(And(ContainSubstring(packagesv1.RolloutSoakAnnotation), ContainSubstring(`"10m"`), ContainSubstring("needs "+packagesv1.RolloutDeadlineAnnotation))))
		g.Expect(o).To(Equal(Options{OnFailure: Hold}))
	})
	t.Run("When they are right it should read them", func(t *testing.T) {
		g := NewWithT(t)
		o, err := ParseOptions(map[string]string{packagesv1.RolloutSoakAnnotation: "10m", packagesv1.RolloutDeadlineAnnotation: "1h", packagesv1.RolloutOnFailureAnnotation: "return-cluster"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o).To(Equal(Options{Soak: 10 * time.Minute, Deadline: time.Hour, OnFailure: ReturnCluster}))
	})
}

// TestInFlightAndUp is about a Package whose last update has not ended while the revision before serves on: it takes up a slot, and is up.
func TestInFlightAndUp(t *testing.T) {
	// hidden makes what was just changed look as it does when the package operator has heard of the change and the revision before is up.
	hidden := func(f *fleet, name string) { f.set(name, func(p *Package) { p.Available, p.Progressed = true, false }) }
	t.Run("When another one broke by itself it should leave the one that is up alone, and reach the one that is down", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1}, "x", "y", "z")
		f.template()
		g.Expect(applied(f.pass())).To(Equal([]string{"x"}))
		hidden(f, "x")
		f.down("y")
		f.template()
		plan := f.pass()
		g.Expect(applied(plan)).To(Equal([]string{"y"}))
		g.Expect(processing(plan)).To(Equal([]string{"x", "y"}))
		f.up("y")
		g.Expect(applied(f.pass())).To(Equal([]string{"x"}), "it has its slot, and its turn has come")
	})
	t.Run("When it is in the last group it should get no new template before the first group has proven it", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 2, Partitioned: true, Static: []string{"first", "last"}}, "a=first", "x=last")
		f.set("x", func(p *Package) { p.Current = false })
		g.Expect(applied(f.pass())).To(Equal([]string{"x"}))
		hidden(f, "x")
		f.template()
		g.Expect(applied(f.pass())).To(Equal([]string{"a"}))
		f.up("a")
		g.Expect(applied(f.pass())).To(Equal([]string{"x"}))
	})
	t.Run("When it uses all of the budget up in a later group it should be named, with what to do", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1, Partitioned: true, Static: []string{"first", "last"}}, "a=first", "x=last")
		f.set("x", func(p *Package) { p.Current = false })
		f.pass()
		hidden(f, "x")
		f.template()
		plan := f.pass()
		g.Expect(plan.Apply).To(BeEmpty())
		g.Expect(plan.Status.Conditions[1].Message).To(Equal("1/2 packages progressed. Group first is current. Being updated: ns/x. " +
			"What is being updated uses up maxUnavailable 1: if it does not end, raise that, or move the cluster to group first."))
		f.set("x", func(p *Package) { p.Progressed = true })
		g.Expect(applied(f.pass())).To(Equal([]string{"a"}))
	})
	t.Run("When nothing is known of its present generation it should not be taken for down", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1, Partitioned: true, Static: []string{"first", "last"}}, "a=first", "x=last")
		f.set("x", func(p *Package) { p.Current = false })
		f.pass()
		f.set("x", func(p *Package) { p.Unreported = true })
		f.template()
		g.Expect(f.pass().Apply).To(BeEmpty())
	})
}
