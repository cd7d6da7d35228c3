package connector

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

var (
	noon     = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	refused  = unreachable("connection refused")
	tooSlow  = unreachable("it does not answer in time")
	redirect = misbehaves("it redirects to somewhere else")
)

// play makes a probe for each outcome, a second after the other, and returns health and wait after the last.
func play(outcomes ...*Trouble) (health, time.Duration) {
	h, wait, now := health{}, time.Duration(0), noon
	for _, o := range outcomes {
		h, wait = h.after(o, now, DefaultTiming())
		now = now.Add(time.Second)
	}
	return h, wait
}

func TestHealth(t *testing.T) {
	for name, c := range map[string]struct {
		outcomes []*Trouble
		state    state
		trouble  *Trouble
		wait     time.Duration
	}{
		"When the first probe succeeds it should be up":                      {[]*Trouble{nil}, up, nil, 10 * time.Second},
		"When the first probe fails it should be down":                       {[]*Trouble{refused}, down, refused, 5 * time.Second},
		"When one probe fails it should ask again soon":                      {[]*Trouble{nil, refused}, up, nil, 2 * time.Second},
		"When two probes fail it should be down":                             {[]*Trouble{nil, refused, refused}, down, refused, 5 * time.Second},
		"When it stays down it should wait longer":                           {[]*Trouble{refused, refused, refused}, down, refused, 20 * time.Second},
		"When it is down for long it should wait half a minute":              {[]*Trouble{refused, refused, refused, refused, refused, refused, refused}, down, refused, 30 * time.Second},
		"When another trouble shows once it should keep the first":           {[]*Trouble{refused, tooSlow}, down, refused, 10 * time.Second},
		"When another trouble shows twice it should take it":                 {[]*Trouble{refused, tooSlow, tooSlow}, down, tooSlow, 20 * time.Second},
		"When troubles take turns it should keep the first":                  {[]*Trouble{refused, tooSlow, redirect, tooSlow, redirect}, down, refused, 30 * time.Second},
		"When it comes back it should be up":                                 {[]*Trouble{refused, nil}, up, nil, 10 * time.Second},
		"When it goes soon after it came it should go on with the long wait": {[]*Trouble{refused, refused, nil, refused, refused}, down, refused, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h, wait := play(c.outcomes...)
			g.Expect(h.state).To(Equal(c.state))
			g.Expect(h.trouble).To(Equal(c.trouble))
			g.Expect(wait).To(Equal(c.wait))
		})
	}
}

// Whatever a target does, its state says what it is, and probes neither stop nor rush.
func TestHealthProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		timing, h, now := DefaultTiming(), health{}, noon
		var changes int
		for range rapid.IntRange(1, 200).Draw(t, "probes") {
			trouble := rapid.SampledFrom([]*Trouble{nil, nil, refused, tooSlow, redirect}).Draw(t, "trouble")
			next, wait := h.after(trouble, now, timing)
			if (next.state == down) != (next.trouble != nil) {
				t.Fatalf("state %d with trouble %v", next.state, next.trouble)
			}
			if trouble == nil && next.state != up {
				t.Fatal("it answers and is not up")
			}
			if wait < timing.Again || wait > timing.Last {
				t.Fatalf("next probe in %s", wait)
			}
			if next.state != h.state {
				changes++
			}
			h, now = next, now.Add(wait)
		}
		// A target that comes and goes as fast as it can is followed less than once in 10 s.
		if limit := int(now.Sub(noon)/(5*time.Second)) + 2; changes > limit {
			t.Fatalf("%d changes in %s", changes, now.Sub(noon))
		}
	})
}
