package unit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/machine/reaper"
)

// Manager runs units.
type Manager struct {
	Reaper *reaper.Reaper
	Clock  clock.Clock
	// Say writes a line to the console.
	Say func(format string, args ...any)
	// LogDir gets a log per unit, SocketDir their notification sockets. Both exist.
	LogDir, SocketDir string
	// Root is where conditions and environment files are looked for; empty: the machine's own.
	Root string
	// Environment is what every process gets, as name=value.
	Environment []string
	// StopBound is how long stopping one unit may take, whatever it says itself.
	StopBound time.Duration
}

// service is a unit that runs.
type service struct {
	*Unit
	m       *Manager
	out     *output
	after   []*service    // started before it
	later   []*service    // stopped before it
	settled chan struct{} // closed when it has started, or will not
	stopped chan struct{} // closed when its processes have ended for good

	mu  sync.Mutex
	ok  bool // it has started
	set bool
}

func (s *service) settle(ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set {
		return
	}
	s.set, s.ok = true, ok
	close(s.settled)
}

func (s *service) started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ok
}

// Run starts units in order and keeps them running. When ctx is done it stops them, in reverse order, and returns.
func (m *Manager) Run(ctx context.Context, units map[string]*Unit) error {
	services := map[string]*service{}
	for name, u := range units {
		out, err := newOutput(filepath.Join(m.LogDir, strings.TrimSuffix(name, ".service")+".log"))
		if err != nil {
			return fmt.Errorf("unit %s: %w", name, err)
		}
		services[name] = &service{Unit: u, m: m, out: out, settled: make(chan struct{}), stopped: make(chan struct{})}
	}
	before, broken := edges(units)
	for _, e := range broken {
		m.Say("%s: does not wait for %s, which waits for it", e[0], e[1])
	}
	for name, earlier := range before {
		for _, e := range earlier {
			services[name].after = append(services[name].after, services[e])
			services[e].later = append(services[e].later, services[name])
		}
	}
	var running sync.WaitGroup
	for _, s := range services {
		running.Go(func() { s.run(ctx, services) })
	}
	running.Wait()
	return nil
}

// run is the life of one service.
func (s *service) run(ctx context.Context, all map[string]*service) {
	defer close(s.stopped)
	defer s.settle(false)
	for _, e := range s.after {
		select {
		case <-ctx.Done():
			return
		case <-e.settled:
		}
	}
	for _, name := range s.Requires {
		// One that isn't waited for, because it waits for this one, decides nothing here.
		if dep := all[name]; dep != nil && slices.Contains(s.after, dep) && !dep.started() {
			s.m.Say("%s: not started, because %s was not", s.Name, name)
			return
		}
	}
	for _, c := range s.Conditions {
		_, err := os.Stat(filepath.Join(s.m.Root, c.Path))
		if (err == nil) == c.Negated {
			s.m.Say("%s: left out by its condition on %s", s.Name, c.Path)
			s.settle(true)
			return
		}
	}
	for attempt := 0; ; attempt++ {
		began := s.m.Clock.Now()
		err := s.once(ctx)
		lasted := s.m.Clock.Now().Sub(began)
		if ctx.Err() != nil {
			return
		}
		again := s.Restart == RestartAlways || (s.Restart == RestartOnFailure && err != nil)
		if err == nil && s.Type == Oneshot {
			return
		}
		if !again {
			if err != nil {
				s.m.Say("%s: failed for good: %v%s", s.Name, err, s.evidence())
			} else {
				s.m.Say("%s: ended", s.Name)
			}
			return
		}
		if lasted > steady {
			attempt = 0
		}
		delay := restartDelay(s.RestartSec, attempt)
		s.m.Say("%s: %s; starting it again in %s%s", s.Name, outcome(err), delay, s.evidence())
		select {
		case <-ctx.Done():
			return
		case <-s.m.Clock.After(delay):
		}
	}
}

func outcome(err error) string {
	if err == nil {
		return "ended"
	}
	return err.Error()
}

// evidence is the end of the log, indented, to follow a message.
func (s *service) evidence() string {
	last := s.out.last(5)
	if last == "" {
		return ""
	}
	return "\n    " + strings.ReplaceAll(last, "\n", "\n    ")
}

const (
	// steady is how long a service must have run for its failures to be forgotten.
	steady = time.Minute
	// maxRestartDelay bounds the wait between starts of a service that keeps failing.
	maxRestartDelay = 10 * time.Second
)

// restartDelay is what the unit asks for, but never so short that a service which can't start keeps the machine busy.
func restartDelay(wanted time.Duration, attempt int) time.Duration {
	backoff := 100 * time.Millisecond << min(attempt, 7)
	return max(wanted, min(backoff, maxRestartDelay))
}

// once starts the service and returns when it has ended.
func (s *service) once(ctx context.Context) error {
	env, err := s.environment()
	if err != nil {
		return err
	}
	startCtx, cancel := ctx, context.CancelFunc(func() {})
	if s.TimeoutStart > 0 {
		startCtx, cancel = context.WithTimeout(ctx, s.TimeoutStart)
	}
	defer cancel()
	defer func() {
		for _, c := range s.StopPost {
			_ = s.command(context.WithoutCancel(ctx), c, env)
		}
	}()
	for _, c := range s.StartPre {
		if err := s.command(startCtx, c, env); err != nil {
			return fmt.Errorf("ExecStartPre: %w", err)
		}
	}
	if s.Type == Oneshot {
		for _, c := range s.Start {
			if err := s.command(startCtx, c, env); err != nil {
				return err
			}
		}
		for _, c := range s.StartPost {
			if err := s.command(startCtx, c, env); err != nil {
				return fmt.Errorf("ExecStartPost: %w", err)
			}
		}
		s.m.Say("%s: done", s.Name)
		s.settle(true)
		return nil
	}
	return s.long(ctx, startCtx, env)
}

// long runs a service of type simple or notify.
func (s *service) long(ctx, startCtx context.Context, env map[string]string) error {
	ready := make(chan struct{})
	if s.Type == Notify {
		socket := filepath.Join(s.m.SocketDir, s.Name)
		listener, err := listen(socket, ready)
		if err != nil {
			return err
		}
		defer listener.Close()
		env["NOTIFY_SOCKET"] = socket
	} else {
		close(ready)
	}
	pid, ended, err := s.start(s.Start[0], env)
	if err != nil {
		return err
	}
	var wrong error
	select {
	case <-ready:
		for _, c := range s.StartPost {
			if err := s.command(startCtx, c, env); err != nil {
				wrong = fmt.Errorf("ExecStartPost: %w", err)
				break
			}
		}
		if wrong == nil {
			s.m.Say("%s: started, process %d", s.Name, pid)
			s.settle(true)
		}
	case status := <-ended:
		return s.judge(status)
	case <-startCtx.Done():
		if ctx.Err() == nil {
			wrong = fmt.Errorf("it did not say within %s that it is ready", s.TimeoutStart)
		}
	}
	if wrong != nil {
		s.kill(pid, ended)
		return wrong
	}
	select {
	case status := <-ended:
		return s.judge(status)
	case <-ctx.Done():
		// What was started after it may need it in order to stop.
		for _, l := range s.later {
			<-l.stopped
		}
		s.kill(pid, ended)
		return nil
	}
}

// judge turns the status of the main process into an error unless it ended well.
func (s *service) judge(status syscall.WaitStatus) error {
	if status.Exited() && status.ExitStatus() == 0 {
		return nil
	}
	return errors.New("it " + reaper.Describe(status))
}

// kill ends a process and what it has started, unless the unit wants these left alone.
func (s *service) kill(pid int, ended <-chan syscall.WaitStatus) {
	send := func(sig syscall.Signal) {
		if s.m.Reaper.Signal(pid, sig) && !s.KillProcessOnly {
			_ = syscall.Kill(-pid, sig)
		}
	}
	send(syscall.SIGTERM)
	bound := s.TimeoutStop
	if s.m.StopBound > 0 && (bound == 0 || bound > s.m.StopBound) {
		bound = s.m.StopBound
	}
	select {
	case <-ended:
		return
	case <-s.m.Clock.After(bound):
	}
	s.m.Say("%s: did not stop within %s; killing it", s.Name, bound)
	send(syscall.SIGKILL)
	<-ended
}

// command runs one command to its end.
func (s *service) command(ctx context.Context, c Command, env map[string]string) error {
	pid, ended, err := s.start(c, env)
	if err == nil {
		select {
		case status := <-ended:
			if err = s.judge(status); err != nil {
				err = fmt.Errorf("%s: %w", strings.Join(c.Words, " "), err)
			}
		case <-ctx.Done():
			s.kill(pid, ended)
			err = fmt.Errorf("%s: stopped: %w", strings.Join(c.Words, " "), ctx.Err())
		}
	}
	if c.IgnoreErrors && ctx.Err() == nil {
		return nil
	}
	return err
}

func (s *service) start(c Command, env map[string]string) (int, <-chan syscall.WaitStatus, error) {
	words, err := expand(c, s.Name, env)
	if err != nil {
		return 0, nil, err
	}
	program, err := lookup(words[0], env["PATH"])
	if err != nil {
		return 0, nil, err
	}
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return s.m.Reaper.Start(reaper.Spec{Path: program, Args: words, Env: list, Dir: s.WorkingDirectory, Output: s.out.write})
}

// lookup finds a program: an absolute path as it is, a name on the search path.
func lookup(program, search string) (string, error) {
	if filepath.IsAbs(program) {
		return program, nil
	}
	for _, dir := range filepath.SplitList(search) {
		file := filepath.Join(dir, program)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("the program %s is not on the search path %s", program, search)
}

// environment is read anew for every start, because units that ran before may have written files of it.
func (s *service) environment() (map[string]string, error) {
	env := map[string]string{}
	for _, list := range [][]string{s.m.Environment, s.Environment} {
		for _, e := range list {
			name, value, _ := strings.Cut(e, "=")
			env[name] = value
		}
	}
	for _, f := range s.EnvironmentFiles {
		data, err := readBounded(filepath.Join(s.m.Root, f.Path))
		if err != nil {
			if f.Optional {
				continue
			}
			return nil, fmt.Errorf("reading EnvironmentFile %s: %w", f.Path, err)
		}
		for name, value := range parseEnvironment(data) {
			env[name] = value
		}
	}
	return env, nil
}
