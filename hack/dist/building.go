package main

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/local/builds"
)

// buildsOf is what the chosen parts build, in order.
func (d *distribution) buildsOf(chosen []part) (targets []builds.Target) {
	for _, p := range chosen {
		if p.targets != nil {
			targets = append(targets, p.targets(d)...)
		}
	}
	return targets
}

// enqueue makes targets the next that are built.
func (d *distribution) enqueue(targets ...builds.Target) {
	d.queue = builds.NewQueue(d.root, clock.RealClock{}, targets...)
}

// text tells how far the builds are.
func text(s builds.Step) string {
	what := ""
	if s.Progress != (builds.Progress{}) {
		what = ", " + s.Progress.String()
	}
	return fmt.Sprintf("building, %s: %s, %d of %d%s", builds.About(s.Left), s.Name, s.Number, s.Total, what)
}

// build builds a target, the next one of the queue.
func (d *distribution) build(ctx context.Context, say func(string, ...any), t builds.Target) error {
	if d.queue == nil || d.queue.Empty() { // called without a plan
		d.enqueue(t)
	}
	report := func(s builds.Step) { say("%s", text(s)) }
	report(d.queue.Step())
	if err := d.queue.Next(ctx, report); err != nil {
		return fmt.Errorf("building %s: %w", t.Name, err)
	}
	return nil
}
