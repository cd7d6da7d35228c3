package hostedcontrolplane

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestPaced(t *testing.T) {
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
			p := &paced{clock: clock, pass: func(context.Context, ctrl.Request) (ctrl.Result, bool, error) {
				passes++
				clock.SetTime(clock.Now().Add(tc.takes))
				return ctrl.Result{RequeueAfter: time.Hour}, tc.acted, tc.err
			}}
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
