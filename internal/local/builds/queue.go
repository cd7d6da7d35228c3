package builds

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Queue builds targets one after the other, because the go command uses every processor for each, and tells the person who waits how far all of them are. It remembers
// how long they took.
type Queue struct {
	root  string
	clock clock.PassiveClock
	times *Times
	left  []Target
	total int
}

// NewQueue makes a queue of targets of the checkout at root.
func NewQueue(root string, clk clock.PassiveClock, targets ...Target) *Queue {
	return &Queue{root: root, clock: clk, times: ReadTimes(root), left: targets, total: len(targets)}
}

// Step is how far a queue is.
type Step struct {
	Name          string // of the target that is built
	Number, Total int    // it is the first, the second, …, of so many
	Progress      Progress
	// Left is a forecast for this target and all behind it.
	Left time.Duration
}

// Empty says that everything is built.
func (q *Queue) Empty() bool { return len(q.left) == 0 }

// Step is where the queue stands before the next target. It must not be empty.
func (q *Queue) Step() Step { return q.step(Progress{}, 0) }

func (q *Queue) step(p Progress, since time.Duration) Step {
	return Step{Name: q.left[0].Name, Number: q.total - len(q.left) + 1, Total: q.total, Progress: p, Left: q.times.Left(q.left, p, since)}
}

// Next builds the next target, and reports as Build does; a target that fails stays the next one. The queue must not be empty.
func (q *Queue) Next(ctx context.Context, report func(Step)) error {
	begin := q.clock.Now()
	var last Progress
	err := Build(ctx, q.root, q.left[0], func(p Progress) {
		last = p
		report(q.step(p, q.clock.Since(begin)))
	})
	if err != nil {
		return err
	}
	q.times.Note(q.left[0], last, q.clock.Since(begin))
	q.left = q.left[1:]
	return nil
}
