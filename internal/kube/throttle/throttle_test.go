package throttle

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestGaps(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		acted bool
		err   error
		takes time.Duration // of a pass
		after time.Duration // from its end to the next event
		wait  time.Duration // what the next event is put off by; zero: not at all
	}{
		"When an event comes right behind a pass it should put it off":                  {acted: true, takes: 10 * time.Millisecond, after: 50 * time.Millisecond, wait: 150 * time.Millisecond},
		"When an event comes after a quiet moment it should act at once":                {acted: true, takes: 10 * time.Millisecond, after: leastGap},
		"When a pass took long it should leave the processor to others for longer":      {acted: true, takes: 400 * time.Millisecond, after: 0, wait: 1200 * time.Millisecond},
		"When passes take very long it should put events off no longer than the bound":  {acted: true, takes: time.Minute, after: 0, wait: mostGap},
		"When the pass could not act yet it should act on the next event at once":       {takes: time.Second, after: 0},
		"When a pass failed behind its acting it should pace the next one all the same": {acted: true, err: broken, takes: 10 * time.Millisecond, after: 0, wait: leastGap},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			clock := clocktesting.NewFakePassiveClock(time.Now())
			passes := 0
			p := New(func(context.Context, ctrl.Request) (ctrl.Result, bool, error) {
				passes++
				clock.SetTime(clock.Now().Add(tc.takes))
				return ctrl.Result{RequeueAfter: time.Hour}, tc.acted, tc.err
			}, clock, nil)
			_, err := p.Reconcile(t.Context(), ctrl.Request{})
			if tc.err != nil {
				g.Expect(err).To(MatchError(tc.err))
			}
			clock.SetTime(clock.Now().Add(tc.after))
			result, err := p.Reconcile(t.Context(), ctrl.Request{})
			if tc.wait > 0 {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(result.RequeueAfter).To(Equal(tc.wait))
				g.Expect(passes).To(Equal(1))
				clock.SetTime(clock.Now().Add(tc.wait))
				result, _ = p.Reconcile(t.Context(), ctrl.Request{})
			}
			g.Expect(result.RequeueAfter).To(Equal(time.Hour))
			g.Expect(passes).To(Equal(2))
		})
	}
}

func TestUrgent(t *testing.T) {
	t.Parallel()
	demo := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "clusters", Name: "demo"}}
	other := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "clusters", Name: "other"}}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	waited, passes := false, map[ctrl.Request]int{}
	p := New(func(_ context.Context, req ctrl.Request) (ctrl.Result, bool, error) {
		passes[req]++
		return ctrl.Result{}, true, nil
	}, clock, func(context.Context, ctrl.Request) bool { return waited })
	reconcile := func(req ctrl.Request) time.Duration {
		result, err := p.Reconcile(t.Context(), req)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return result.RequeueAfter
	}
	reconcile(demo)
	t.Run("When another object changes in the gap it should act at once", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(reconcile(other)).To(BeZero())
		g.Expect(passes[other]).To(Equal(1))
	})
	t.Run("When nobody waits it should keep the gap", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(reconcile(demo)).To(Equal(leastGap))
		g.Expect(passes[demo]).To(Equal(1))
	})
	t.Run("When somebody waits it should act in the gap", func(t *testing.T) {
		g := NewWithT(t)
		waited = true
		g.Expect(reconcile(demo)).To(BeZero())
		g.Expect(passes[demo]).To(Equal(2))
	})
	t.Run("When gaps are over it should forget them", func(t *testing.T) {
		clock.SetTime(clock.Now().Add(mostGap))
		reconcile(demo)
		NewWithT(t).Expect(p.after).To(HaveLen(1))
	})
}
