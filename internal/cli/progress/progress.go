// Package progress tells a person what a long command does, what it waits for, and for how long already.
//
// A [Printer] is for what happens in a cluster: each new state is a line with the time. A [Display] is for tasks on this machine, one after the
// other: on a terminal the current state is one line that is rewritten; elsewhere each change is a line of its own, and a state of which
// only numbers change is said again now and then.
package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"
)

const (
	// pollEvery is how often the condition is looked at: a person doesn't notice a second.
	pollEvery = time.Second
	// sayAgainAfter is how long the same state may last before it is said again, so that a log shows the wait is alive.
	sayAgainAfter = 15 * time.Second
)

// State is one look at what is waited for.
type State struct {
	Done    bool
	Waiting string // what is missing, in words for a person; empty when Done
}

// Done is the state of something that is reached.
func Done() State { return State{Done: true} }

// Waiting is the state of something that isn't reached, and why.
func Waiting(format string, args ...any) State { return State{Waiting: fmt.Sprintf(format, args...)} }

// terminalError is an error that waiting longer doesn't heal.
type terminalError struct{ error }

func (e terminalError) Unwrap() error { return e.error }

// Terminal marks an error that ends the wait at once. Other errors are shown and the wait goes on: an API server that
// restarts must not end a wait of minutes.
func Terminal(err error) error { return terminalError{err} }

// Printer prints progress lines with the time since it was made. It is not safe for concurrent use.
type Printer struct {
	out   io.Writer
	clock clock.WithTicker
	start time.Time
}

// New returns a Printer whose clock starts now. A nil clock is the real one.
func New(out io.Writer, clk clock.WithTicker) *Printer {
	if clk == nil {
		clk = clock.RealClock{}
	}
	return &Printer{out: out, clock: clk, start: clk.Now()}
}

// Printf prints a line.
func (p *Printer) Printf(format string, args ...any) {
	elapsed := p.clock.Since(p.start).Round(time.Second)
	fmt.Fprintf(p.out, "[%5s] %s\n", elapsed, fmt.Sprintf(format, args...))
}

// Until looks every second until the state is done, and prints each new state. It returns the context's error, with the
// last state, when the context ends first.
func (p *Printer) Until(ctx context.Context, what string, look func(context.Context) (State, error)) error {
	ticker := p.clock.NewTicker(pollEvery)
	defer ticker.Stop()
	began := p.clock.Now()
	var said string
	var saidAt time.Time
	for {
		state, err := look(ctx)
		var terminal terminalError
		switch {
		case errors.As(err, &terminal):
			return fmt.Errorf("waiting for %s: %w", what, terminal.error)
		case err != nil && ctx.Err() == nil:
			state = Waiting("%v", err)
		case err == nil && state.Done:
			return nil
		}
		// A look that the deadline cut short says nothing new: keep the state before it.
		if ctx.Err() == nil && (state.Waiting != said || p.clock.Since(saidAt) >= sayAgainAfter) {
			p.Printf("waiting for %s: %s", what, state.Waiting)
			said, saidAt = state.Waiting, p.clock.Now()
		}
		select {
		case <-ctx.Done():
			return stopped(ctx, what, said, p.clock.Since(began))
		case <-ticker.C():
		}
	}
}

// stopped explains why a wait ended early: the message names what was missing, which is what a person looks for.
func stopped(ctx context.Context, what, last string, waited time.Duration) error {
	verb := "interrupted"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		verb = "timed out"
	}
	if last != "" {
		last = ": " + last
	}
	return fmt.Errorf("%s after %s waiting for %s%s: %w", verb, waited.Round(time.Second), what, last, ctx.Err())
}
