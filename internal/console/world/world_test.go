package world

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestSince(t *testing.T) {
	t.Run("When an object changes often it should be told once", func(t *testing.T) {
		g := NewWithT(t)
		w := New()
		for range 10 {
			w.set(Clusters, Key{"a", "b"}, &Cluster{Namespace: "a", Name: "b"})
		}
		w.set(Packages, Key{"a", "p"}, &Package{})
		changes, seq, ok := w.Since(0)
		g.Expect(ok).To(BeTrue())
		g.Expect(seq).To(Equal(uint64(11)))
		g.Expect(changes).To(Equal([]Change{{Clusters, Key{"a", "b"}}, {Packages, Key{"a", "p"}}}))
		changes, _, ok = w.Since(seq)
		g.Expect(ok).To(BeTrue())
		g.Expect(changes).To(BeEmpty())
	})
	t.Run("When more changed than is remembered it should have the reader begin anew", func(t *testing.T) {
		g := NewWithT(t)
		w := New()
		for range Ring + 1 {
			w.set(Clusters, Key{"a", "b"}, &Cluster{})
		}
		_, _, ok := w.Since(0)
		g.Expect(ok).To(BeFalse())
		_, _, ok = w.Since(1)
		g.Expect(ok).To(BeTrue())
	})
	t.Run("When the number is of a later process it should have the reader begin anew", func(t *testing.T) {
		_, _, ok := New().Since(5)
		NewWithT(t).Expect(ok).To(BeFalse())
	})
}

func TestPoolsCount(t *testing.T) {
	g := NewWithT(t)
	w := New()
	w.set(Clusters, Key{"a", "b"}, &Cluster{Namespace: "a", Name: "b"})
	w.set(Pools, Key{"a", "p"}, &Pool{Cluster: "b", Ready: 2, Wanted: 3})
	w.set(Pools, Key{"a", "q"}, &Pool{Cluster: "b", Ready: 1, Wanted: 1})
	g.Expect(w.Cluster(Key{"a", "b"})).To(And(HaveField("Ready", int32(3)), HaveField("Wanted", int32(4)), HaveField("Pools", 2)))
	// One moves to another cluster, one goes.
	w.set(Pools, Key{"a", "q"}, &Pool{Cluster: "c", Ready: 1, Wanted: 1})
	w.set(Pools, Key{"a", "p"}, nil)
	g.Expect(w.Cluster(Key{"a", "b"})).To(And(HaveField("Ready", int32(0)), HaveField("Pools", 0)))
	g.Expect(w.poolsOf).To(HaveLen(1))
}
