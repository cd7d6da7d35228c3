// Package companion runs another program of ours beside a manager, for as long as that leads. What links large libraries, such as those of clouds, is a
// program of its own, so that clusters that have no use for it neither load nor wait for it.
package companion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// firstPause and lastPause are between the end of a program and its next start.
	firstPause, lastPause = time.Second, 30 * time.Second
	// steady is how long a program has to run for its end to count as the first.
	steady = time.Minute
	// grace is how long it may take to end once it is told to.
	grace = 10 * time.Second
)

// Program is what runs. Its fields are set before Start.
type Program struct {
	// Path is an absolute path, such as Beside gives.
	Path string
	Args []string
	// Output gets what it says on both of its channels; nil: standard error.
	Output io.Writer
	// Clock measures pauses; nil: the real one.
	Clock clock.WithTicker
}

var (
	_ manager.Runnable               = &Program{}
	_ manager.LeaderElectionRunnable = &Program{}
)

// Beside is the path of a program that lies in the folder of this one.
func Beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", name, err)
	}
	if resolved, err := filepath.EvalSymlinks(self); err == nil {
		self = resolved
	}
	return filepath.Join(filepath.Dir(self), name), nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: there is one at a time, as its writes are its leader's.
func (p *Program) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it runs the program until ctx ends, and again whenever it ends before. It never fails: what else its manager does goes
// on, and conditions that nobody writes tell the rest.
func (p *Program) Start(ctx context.Context) error {
	clk := p.Clock
	if clk == nil {
		clk = clock.RealClock{}
	}
	log := ctrl.LoggerFrom(ctx).WithValues("program", filepath.Base(p.Path))
	for failures := 0; ; failures++ {
		began := clk.Now()
		err := p.once(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // because it was told to end
		}
		if clk.Since(began) >= steady {
			failures = 0
		}
		delay := pause(failures)
		log.Error(err, "a program beside this one ended; it is started again", "after", clk.Since(began).Round(time.Second).String(), "pause", delay.Round(time.Second).String())
		select {
		case <-ctx.Done():
			return nil
		case <-clk.After(delay):
		}
	}
}

// pause is how long to wait after so many failures in a row, never in step with others.
func pause(failures int) time.Duration {
	delay := min(lastPause, firstPause<<min(failures, 10))
	return delay/2 + rand.N(delay/2)
}

// once runs the program until it ends; its error is never nil.
func (p *Program) once(ctx context.Context) error {
	// The kernel ends the program with the thread that started it, so that one must live as long as this goroutine.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if p.Output != nil {
		cmd.Stdout, cmd.Stderr = p.Output, p.Output
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	endWithParent(cmd)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s: %w", p.Path, err)
	}
	return errors.New("it ended by itself")
}
