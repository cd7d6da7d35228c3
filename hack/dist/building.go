package main

import (
	"context"
	"fmt"
	"time"

	"hcp.internal/platform/internal/local/builds"
)

// queue are the builds of a whole run, for the person who waits: which one it is at, and how long all that are left will take.
type queue struct {
	times *builds.Times
	left  []builds.Target
	total int
}

// newQueue lists what the chosen parts build.
func (d *distribution) newQueue(chosen []part) *queue {
	q := &queue{times: builds.ReadTimes(d.root)}
	for _, p := range chosen {
		if p.targets != nil {
			q.left = append(q.left, p.targets(d)...)
		}
	}
	q.total = len(q.left)
	return q
}

// say tells how far a build is.
func (q *queue) say(say func(string, ...any), t builds.Target, p builds.Progress, since time.Duration) {
	what := ""
	if p != (builds.Progress{}) {
		what = ", " + p.String()
	}
	say("building, %s: %s, %d of %d%s", builds.About(q.times.Left(q.left, p, since)), t.Name, q.total-len(q.left)+1, q.total, what)
}

// build builds the next target of the queue.
func (d *distribution) build(ctx context.Context, say func(string, ...any), t builds.Target) error {
	if d.queue == nil || len(d.queue.left) == 0 { // called without a plan
		d.queue = &queue{times: builds.ReadTimes(d.root), left: []builds.Target{t}, total: 1}
	}
	begin := time.Now()
	var last builds.Progress
	d.queue.say(say, t, last, 0)
	err := builds.Build(ctx, d.root, t, func(p builds.Progress) {
		last = p
		d.queue.say(say, t, p, time.Since(begin))
	})
	if err != nil {
		return fmt.Errorf("building %s: %w", t.Name, err)
	}
	d.queue.times.Note(t, last, time.Since(begin))
	d.queue.left = d.queue.left[1:]
	return nil
}
