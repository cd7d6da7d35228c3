// Package child runs programs that somebody else chose, as processes of their own and within bounds: of time, of memory, of processes, of what they
// write to disk and say. Who breaks a bound is ended together with everything that it started. What a program says is kept in part, and without the
// secrets that it was given.
//
// It is no sandbox: the programs have the rights and the network of this process. Bounds keep what runs beside them alive.
package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of a program and all that it starts. The zero value of a field means the default.
type Limits struct {
	Time      time.Duration // default 2 minutes
	Memory    int64         // bytes resident, of all processes; default 1 GiB
	Processes int           // default 16, for a shell and what it calls
	Disk      int64         // bytes in Command.Dir; default 512 MiB more than there were
	File      int64         // bytes of any single file; default 128 MiB
	Output    int           // bytes of what is said that are kept; default 4 KiB
}

func (l Limits) withDefaults() Limits {
	l.Time = cmp.Or(l.Time, 2*time.Minute)
	l.Memory = cmp.Or(l.Memory, 1<<30)
	l.Processes = cmp.Or(l.Processes, 16)
	l.Disk = cmp.Or(l.Disk, 512<<20)
	l.File = cmp.Or(l.File, 128<<20)
	l.Output = cmp.Or(l.Output, 4<<10)
	return l
}

// Command is a program to run.
type Command struct {
	// Name is how errors call it.
	Name string
	Path string
	Args []string
	// Dir is the folder that it works in and writes to, and the only one that is measured. Its temporary files and its home are there, too.
	Dir string
	// Secrets are texts that must not be repeated of what it says, besides what looks like a key or a token.
	Secrets []string
}

// Error says how a program ended. Its text is for users.
type Error struct {
	Name string
	// Reason is what happened: "exited with code 1".
	Reason string
	// Refused is true when the program ended by itself with a code other than 0: it did not like what it was given.
	Refused bool
	// Output is the end of what it said, without secrets.
	Output string
}

func (e *Error) Error() string {
	if e.Output == "" {
		return e.Name + " " + e.Reason
	}
	return e.Name + " " + e.Reason + "; it said: " + e.Output
}

// Runner runs programs. The zero Runner is ready.
type Runner struct {
	Limits Limits
	// Orphans has processes ended that a program has left behind in a session of their own, by their being handed to this process. Set it only where
	// nothing else starts processes.
	Orphans bool
}

// watchEvery is how often a program is measured.
const watchEvery = 200 * time.Millisecond

// Run runs a program to its end. The error is an *Error.
func (r Runner) Run(ctx context.Context, c Command) error {
	p, err := r.Start(ctx, c)
	if err != nil {
		return err
	}
	<-p.Done()
	return p.Err()
}

// Process is a program that runs.
type Process struct {
	command Command
	limits  Limits
	orphans bool
	cmd     *exec.Cmd
	said    *tail
	base    int64 // bytes in the folder at the start

	done   chan struct{}
	once   sync.Once
	broken error // why it was ended; nil: it ended by itself, or was asked to
	stop   chan struct{}
	err    error
}

// Start starts a program. It is ended when ctx is.
func (r Runner) Start(ctx context.Context, c Command) (*Process, error) {
	limits := r.Limits.withDefaults()
	temporary := filepath.Join(c.Dir, "tmp")
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return nil, &Error{Name: c.Name, Reason: "could not be started: there is no folder for its files"}
	}
	if r.Orphans {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // as process 1 of a container this process is it anyway
	}
	p := &Process{command: c, limits: limits, orphans: r.Orphans, said: &tail{limit: limits.Output}, done: make(chan struct{}), stop: make(chan struct{})}
	p.base, _ = usage(c.Dir)
	p.cmd = exec.Command(c.Path, c.Args...) //nolint:noctx // because it is what the caller asked to run; watch ends it with ctx, and what it started
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = c.Dir, p.said, p.said
	// Nothing of this process's environment, which may hold credentials.
	p.cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + c.Dir, "TMPDIR=" + temporary}
	// A session of its own makes a group of all that it starts and that doesn't leave it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.cmd.WaitDelay = time.Second // a process that it left behind may hold its output open
	if err := p.cmd.Start(); err != nil {
		return nil, &Error{Name: c.Name, Reason: "could not be started: " + startProblem(err)}
	}
	p.bound()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	go p.watch(ctx, ended)
	return p, nil
}

// startProblem says what a person can do something about: a program that is linked to libraries is not found without its loader.
func startProblem(err error) string {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return "it, or the loader of the libraries that it is linked to, is not in this image"
	case errors.Is(err, syscall.ENOEXEC):
		return "it is not a program for this machine"
	case errors.Is(err, syscall.EACCES):
		return "it may not be run"
	}
	return "the system refused"
}

// bound sets what the kernel keeps to. A process can only lower it.
func (p *Process) bound() {
	for resource, limit := range map[int]uint64{
		unix.RLIMIT_CORE:  0,
		unix.RLIMIT_FSIZE: uint64(p.limits.File),
	} {
		_ = unix.Prlimit(p.cmd.Process.Pid, resource, &unix.Rlimit{Cur: limit, Max: limit}, nil) // the measurements bound it, too
	}
}

// Done is closed when the program has ended, and all that it had started.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how it ended: nil when it succeeded, or was stopped. Ask once it is done.
func (p *Process) Err() error { return p.err }

// Stop ends it and waits until it has.
func (p *Process) Stop() {
	p.once.Do(func() { close(p.stop) })
	<-p.done
}

// Said is the end of what it has said until now, without secrets.
func (p *Process) Said() string {
	text, limit, cut := p.said.text()
	// The folder's name says nothing, and may differ every time.
	return redact(strings.ReplaceAll(text, p.command.Dir+"/", ""), limit, cut, p.command.Secrets)
}

// watch measures until the end.
func (p *Process) watch(ctx context.Context, ended <-chan error) {
	defer close(p.done)
	late := time.NewTimer(p.limits.Time)
	defer late.Stop()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			p.sweep()
			if broken := p.measure(); p.broken == nil && broken != nil {
				p.broken = broken
			}
			p.err = p.verdict(err)
			return
		case <-p.stop:
			p.end(ended)
			return
		case <-ctx.Done():
			p.broken = fmt.Errorf("was ended: %w", context.Cause(ctx))
		case <-late.C:
			p.broken = fmt.Errorf("took longer than %s", p.limits.Time)
		case <-tick.C:
			p.broken = p.measure()
		}
		if p.broken != nil {
			p.end(ended)
			p.err = p.verdict(nil)
			return
		}
	}
}

// end ends the program and what it started, and waits for it.
func (p *Process) end(ended <-chan error) {
	p.sweep()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-ended // that it was killed is known
	p.sweep()
}

func (p *Process) verdict(err error) error {
	said := p.Said()
	var exit *exec.ExitError
	switch {
	case p.broken != nil:
		return &Error{Name: p.command.Name, Reason: p.broken.Error(), Output: said}
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case errors.As(err, &exit) && exit.Exited():
		return &Error{Name: p.command.Name, Reason: fmt.Sprintf("exited with code %d", exit.ExitCode()), Refused: true, Output: said}
	case errors.As(err, &exit):
		return &Error{Name: p.command.Name, Reason: "was ended by the system: " + exit.Error(), Output: said}
	}
	return &Error{Name: p.command.Name, Reason: "could not be waited for", Output: said}
}
