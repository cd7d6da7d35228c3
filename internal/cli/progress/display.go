package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/cli/terminal"
)

const (
	poll    = 100 * time.Millisecond
	refresh = 500 * time.Millisecond // of the line on a terminal
	// quietFor is how long a state may last without a terminal before it is said again, so that a log shows the wait is alive.
	quietFor = 30 * time.Second
)

// Display shows one task after the other. It is safe for concurrent use.
type Display struct {
	out   io.Writer
	tty   bool
	clock clock.WithTicker

	mu      sync.Mutex
	steps   int // 0: tasks have no numbers
	step    int
	task    string
	detail  string
	since   time.Time
	saidAt  time.Time
	stopped chan struct{}
}

// NewDisplay returns a Display; tty says that out is a terminal.
func NewDisplay(out io.Writer, tty bool, clk clock.WithTicker) *Display {
	return &Display{out: out, tty: tty, clock: clk}
}

// Number gives the tasks that follow numbers, "[1/6]" and so on.
func (d *Display) Number(steps int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps, d.step = steps, 0
}

// Do runs a task and shows how it ended. The task says what it is at with the function that it gets.
func (d *Display) Do(ctx context.Context, task string, run func(ctx context.Context, say func(format string, args ...any)) error) error {
	d.begin(task)
	err := run(ctx, d.say)
	d.end(err)
	if err != nil {
		return fmt.Errorf("%s: %w", task, err)
	}
	return nil
}

// Until polls until look returns true. What look says is missing becomes part of the error when ctx ends first.
func (d *Display) Until(ctx context.Context, look func(ctx context.Context) (done bool, missing string)) error {
	for {
		done, missing := look(ctx)
		if done {
			return nil
		}
		d.say("waiting for %s", missing)
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", missing, context.Cause(ctx))
		case <-d.clock.After(poll):
		}
	}
}

func (d *Display) begin(task string) {
	d.mu.Lock()
	if d.steps > 0 {
		d.step++
		task = fmt.Sprintf("[%d/%d] %s", d.step, d.steps, task)
	}
	d.task, d.detail, d.since, d.stopped = task, "", d.clock.Now(), make(chan struct{})
	d.saidAt = d.since
	d.mu.Unlock()
	if d.tty {
		go d.animate(d.stopped)
	}
}

// animate keeps the time on the line going until the task ends.
func (d *Display) animate(stopped chan struct{}) {
	ticker := d.clock.NewTicker(refresh)
	defer ticker.Stop()
	for {
		d.mu.Lock()
		if d.stopped == stopped {
			d.draw()
		}
		d.mu.Unlock()
		select {
		case <-stopped:
			return
		case <-ticker.C():
		}
	}
}

func (d *Display) draw() {
	line := fmt.Sprintf("  … %s (%s)", d.task, d.clock.Since(d.since).Round(time.Second))
	if d.detail != "" {
		line += ": " + d.detail
	}
	terminal.ClearLine(d.out)
	fmt.Fprint(d.out, truncate(line))
}

// lineWidth keeps the live line on one line of a common terminal; a wrapped line could not be rewritten.
const lineWidth = 100

func truncate(line string) string {
	runes := []rune(line)
	if len(runes) > lineWidth {
		return string(runes[:lineWidth-1]) + "…"
	}
	return line
}

func (d *Display) say(format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	if d.tty {
		if detail != d.detail {
			d.detail = detail
			d.draw()
		}
		return
	}
	if withoutNumbers(detail) == withoutNumbers(d.detail) && now.Sub(d.saidAt) < quietFor {
		return
	}
	d.detail, d.saidAt = detail, now
	fmt.Fprintf(d.out, "  … %s (%s): %s\n", d.task, now.Sub(d.since).Round(time.Second), detail)
}

// numbers are counts and times in what is said.
var numbers = regexp.MustCompile(`\b[0-9]+[a-z]?([0-9]+[a-z])*\b`)

func withoutNumbers(detail string) string { return numbers.ReplaceAllString(detail, "0") }

// Show prints a line that stays, below the task.
func (d *Display) Show(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tty {
		terminal.ClearLine(d.out)
	}
	fmt.Fprintf(d.out, "    %s\n", fmt.Sprintf(format, args...))
	if d.tty && d.stopped != nil {
		d.draw()
	}
}

func (d *Display) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.stopped)
	d.stopped = nil
	mark := "ok"
	if err != nil {
		mark = "!!"
		if errors.Is(err, context.Canceled) {
			mark = "--"
		}
	}
	if d.tty {
		terminal.ClearLine(d.out)
	}
	fmt.Fprintf(d.out, "%s  %s (%s)\n", mark, d.task, d.clock.Since(d.since).Round(100*time.Millisecond))
}
