package rollout

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sleep lets a cluster hibernate, or wakes it.
func (f *fleet) sleep(name string, is bool) {
	for i := range f.in.Clusters {
		if c := &f.in.Clusters[i]; c.Name.Name == name {
			c.Closed, c.Asleep, c.Unready = is, is, map[bool]string{true: "hibernates"}[is]
		}
	}
}

func TestSleep(t *testing.T) {
	t.Run("When a cluster falls asleep in the middle of its update it should give its slot back, and take it again when it wakes", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1}, "a", "b")
		f.template()
		g.Expect(applied(f.pass())).To(Equal([]string{"a"}))
		f.sleep("a", true)
		p := f.pass()
		g.Expect(applied(p)).To(Equal([]string{"b"}))
		g.Expect(processing(p)).To(ConsistOf("a", "b"))
		f.up("b")
		p = f.pass()
		g.Expect(p.Status.UnavailablePackages).To(BeZero())
		f.sleep("a", false)
		f.template()
		p = f.pass()
		g.Expect(applied(p)).To(Equal([]string{"a"}), "it is down, and uses the budget")
		g.Expect(p.Used).To(Equal(1))
	})
	t.Run("When all clusters sleep a rollout should not be finished, and say who it waits for", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1, Tolerated: 1, Partitioned: true}, "a=x", "b=y")
		f.sleep("a", true)
		f.sleep("b", true)
		p := f.pass()
		g.Expect(p.Finished).To(BeFalse())
		g.Expect(p.Sleeps).To(BeFalse())
		g.Expect(p.Status.Conditions[1]).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", "0/0 packages progressed.")), "they have it")
		f.template()
		p = f.pass()
		g.Expect(p.Apply).To(BeEmpty())
		g.Expect(p.Finished).To(BeFalse(), "nobody was given the template")
		g.Expect(p.Sleeps).To(BeTrue())
		g.Expect(p.Status.Conditions).To(HaveExactElements(
			And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", "0/0 packages available.")),
			And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "NotAllPackagesProgressed"),
				HaveField("Message", "0/0 packages progressed. Hosted clusters that sleep, and have their turn when they wake (2): ns/a, ns/b.")),
			HaveField("Message", "0/0 packages paused.")))
		f.sleep("a", false)
		g.Expect(applied(f.pass())).To(Equal([]string{"a"}))
		f.sleep("a", true) // before its update has come to its end
		p = f.pass()
		g.Expect(p.Finished).To(BeFalse())
		g.Expect(p.Status.Conditions[1].Message).To(HaveSuffix("Hosted clusters that sleep, and have their turn when they wake (2): ns/a, ns/b."))
		f.sleep("a", false)
		f.up("a")
		p = f.pass()
		g.Expect(p.Finished).To(BeTrue(), "one has it and is up, and nobody waits for who sleeps")
		g.Expect(p.Sleeps).To(BeFalse())
		g.Expect(p.Status.Conditions[1]).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", "1/1 packages progressed.")))
	})
	t.Run("When some sleep and others get the template it should name those that wait for it, and not those that have it", func(t *testing.T) {
		g := NewWithT(t)
		f := newFleet(Settings{MaxUnavailable: 1, Tolerated: 1}, "a", "b", "c")
		f.set("a", func(p *Package) { p.Current = false })
		f.set("b", func(p *Package) { p.Current = false })
		f.down("c") // as whatever sleeps is
		f.sleep("b", true)
		f.sleep("c", true)
		g.Expect(f.pass().Status.Conditions[1].Message).To(Equal("1/1 packages progressed. Hosted clusters that sleep, and have their turn when they wake (1): ns/b."))
	})
}
