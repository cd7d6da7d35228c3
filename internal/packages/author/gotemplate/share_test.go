package gotemplate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"
)

func TestShare(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	busy := func(t *testing.T, err error) time.Duration {
		t.Helper()
		b, ok := errors.AsType[*BusyError](err)
		if !ok {
			t.Fatalf("got %v, want a BusyError", err)
		}
		return b.After
	}
	t.Run("When a tenant uses more than its share it should wait, and others not", func(t *testing.T) {
		g, clk := NewWithT(t), testingclock.NewFakePassiveClock(start)
		s := NewShare(clk)
		spend := func(d time.Duration) func() error {
			return func() error { clk.SetTime(clk.Now().Add(d)); return nil }
		}
		for range 7 {
			g.Expect(s.Do(t.Context(), "hostile", spend(2*time.Second))).To(Succeed())
		}
		after := busy(t, s.Do(t.Context(), "hostile", spend(0)))
		g.Expect(after).To(And(BeNumerically(">", 0), BeNumerically("<", time.Minute)))
		g.Expect(s.Do(t.Context(), "other", spend(0))).To(Succeed())
		clk.SetTime(clk.Now().Add(after))
		g.Expect(s.Do(t.Context(), "hostile", spend(0))).To(Succeed(), "after the time that it was told")
	})
	t.Run("When a tenant renders it should have one at a time, and others go on", func(t *testing.T) {
		g, s := NewWithT(t), NewShare(testingclock.NewFakePassiveClock(start))
		g.Expect(s.Do(t.Context(), "a", func() error {
			first := busy(t, s.Do(t.Context(), "a", func() error { return nil }))
			g.Expect(s.Wait("a")).To(BeNumerically(">", first), "those who wait don't come back together")
			return s.Do(t.Context(), "b", func() error { return nil })
		})).To(Succeed())
		g.Expect(s.Wait("a")).To(BeZero())
	})
	t.Run("When all places are taken it should wait for one until its time is over", func(t *testing.T) {
		g, s := NewWithT(t), NewShare(testingclock.NewFakePassiveClock(start))
		g.Expect(s.Do(t.Context(), "a", func() error {
			return s.Do(t.Context(), "b", func() error {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				return s.Do(ctx, "c", func() error { return nil })
			})
		})).To(MatchError(context.DeadlineExceeded))
		g.Expect(s.Do(t.Context(), "c", func() error { return nil })).To(Succeed())
	})
	t.Run("When very many tenants have come and gone it should forget them", func(t *testing.T) {
		g, clk := NewWithT(t), testingclock.NewFakePassiveClock(start)
		s := NewShare(clk)
		for i := range 3 * shareTenants {
			g.Expect(s.Do(t.Context(), fmt.Sprint(i), func() error { return nil })).To(Succeed())
			clk.SetTime(clk.Now().Add(time.Second))
		}
		g.Expect(len(s.tenants)).To(BeNumerically("<=", shareTenants))
	})
}
