package cloud

import (
	"fmt"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

var (
	pool = netip.MustParsePrefix("10.97.0.0/29") // six addresses
	none netip.Addr
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestLedger(t *testing.T) {
	t.Run("When a Service asks again it should keep its address", func(t *testing.T) {
		g := NewWithT(t)
		l := newLedger(pool)
		g.Expect(l.allocate("a", none)).To(Equal(addr("10.97.0.1")))
		g.Expect(l.allocate("b", none)).To(Equal(addr("10.97.0.2")))
		g.Expect(l.allocate("a", none)).To(Equal(addr("10.97.0.1")))
	})
	t.Run("When an address is claimed after a restart it should not be given to another", func(t *testing.T) {
		g := NewWithT(t)
		l := newLedger(pool)
		g.Expect(l.claim("a", addr("10.97.0.1"))).To(BeTrue())
		g.Expect(l.claim("b", addr("10.97.0.1"))).To(BeFalse())
		g.Expect(l.allocate("b", none)).To(Equal(addr("10.97.0.2")))
	})
	t.Run("When a Service wishes for an address it should get that one only when it is free and in the pool", func(t *testing.T) {
		g := NewWithT(t)
		l := newLedger(pool)
		g.Expect(l.allocate("a", addr("10.97.0.4"))).To(Equal(addr("10.97.0.4")))
		_, err := l.allocate("b", addr("10.97.0.4"))
		g.Expect(err).To(MatchError(ContainSubstring("another Service has it")))
		for _, outside := range []string{"10.97.0.0", "10.97.0.7", "10.97.1.1", "192.0.2.1"} {
			_, err := l.allocate("b", addr(outside))
			g.Expect(err).To(HaveOccurred(), outside)
		}
		g.Expect(l.allocate("a", addr("10.97.0.5"))).To(Equal(addr("10.97.0.5")))
		g.Expect(l.allocate("c", none)).To(Equal(addr("10.97.0.1")))
		g.Expect(l.owner).To(HaveLen(2))
	})
	t.Run("When the pool is empty it should say what to do, and go on after a deletion", func(t *testing.T) {
		g := NewWithT(t)
		l := newLedger(pool)
		for i := range 6 {
			_, err := l.allocate(fmt.Sprint(i), none)
			g.Expect(err).NotTo(HaveOccurred())
		}
		_, err := l.allocate("late", none)
		g.Expect(err).To(MatchError(ContainSubstring("delete a Service of type LoadBalancer")))
		l.keep([]string{"0", "1", "2", "4", "5"})
		g.Expect(l.allocate("late", none)).To(Equal(addr("10.97.0.4")))
	})
}

// TestLedgerNeverSharesAnAddress checks that whatever happens in whatever order, no two Services have one address and
// no Service has two.
func TestLedgerNeverSharesAnAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger(pool)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			uid := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(t, "service")
			wish := addr(fmt.Sprintf("10.97.0.%d", rapid.IntRange(0, 8).Draw(t, "address")))
			switch rapid.IntRange(0, 3).Draw(t, "action") {
			case 0:
				l.release(uid)
			case 1:
				l.claim(uid, wish)
			case 2:
				_, _ = l.allocate(uid, wish)
			case 3:
				_, _ = l.allocate(uid, none)
			}
			owners := map[string]int{}
			for a, o := range l.owner {
				owners[o]++
				if !pool.Contains(a) || owners[o] > 1 {
					t.Fatalf("%s has %d addresses, one is %s", o, owners[o], a)
				}
			}
		}
	})
}
