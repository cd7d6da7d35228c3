package connector

import "time"

// Timing is how the target is probed.
type Timing struct {
	// Every is the time between probes of a target that answers.
	Every time.Duration
	// Again is the time from a first failure to the probe that decides.
	Again time.Duration
	// First and Last are the shortest and the longest time between probes of a target that is down; it doubles.
	First, Last time.Duration
	// Settled is how long the target must answer until the next outage begins with First again, so that one which comes and goes is not
	// followed every time.
	Settled time.Duration
}

// DefaultTiming notices an outage in some 15 seconds and its end within half a minute.
func DefaultTiming() Timing {
	return Timing{Every: 10 * time.Second, Again: 2 * time.Second, First: 5 * time.Second, Last: 30 * time.Second, Settled: 5 * time.Minute}
}

// state of the target.
type state int

const (
	unknown state = iota // not probed yet
	up
	down
)

// health is what probes have found out. Its zero value knows nothing.
type health struct {
	state state
	// trouble is why the target is down.
	trouble *Trouble
	// failures in a row while up.
	failures int
	// wait is the last time between probes of a target that was down; 0 when that is forgotten.
	wait time.Duration
	// upSince is when the target came up.
	upSince time.Time
	// other trouble than the reported one was found by the last probe.
	other *Trouble
}

// after is health after a probe that found trouble, or nil. It says when to probe again.
//
// One failure does not make a target go down. The trouble of one that is down changes only when two probes in a row find the same other one, so
// that a target which fails in many ways does not cause as many writes.
func (h health) after(trouble *Trouble, now time.Time, t Timing) (health, time.Duration) {
	if trouble == nil {
		if h.state != up {
			h.upSince = now
		}
		if now.Sub(h.upSince) >= t.Settled {
			h.wait = 0
		}
		return health{state: up, wait: h.wait, upSince: h.upSince}, t.Every
	}
	switch {
	case h.state == up && h.failures == 0:
		h.failures++
		return h, t.Again
	case h.state != down:
		h = health{state: down, trouble: trouble, wait: h.wait}
	case *trouble == *h.trouble:
		h.other = nil
	case h.other != nil && *h.other == *trouble:
		h.trouble, h.other = trouble, nil
	default:
		h.other = trouble
	}
	h.wait = min(max(2*h.wait, t.First), t.Last)
	return h, h.wait
}
