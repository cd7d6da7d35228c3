package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Process is one program to keep running.
type Process struct {
	Name  string   `json:"name"`
	Path  string   `json:"path"`
	Args  []string `json:"args"`
	Env   []string `json:"env,omitempty"`
	After []string `json:"after,omitempty"` // names of processes that must be ready before this one starts
	// Ready returns nil when the process does its work. It must end soon after ctx does.
	Ready func(ctx context.Context) error `json:"-"`
}

const (
	probeFast    = 100 * time.Millisecond // until ready
	probeSlow    = 5 * time.Second        // afterwards
	probeTimeout = 3 * time.Second
	// stopGrace is how long a child may take to end after SIGTERM, and how long output is awaited that a grandchild holds open.
	stopGrace = 5 * time.Second
)

// Supervisor runs processes until its context ends, then stops them in reverse order.
type Supervisor struct {
	Processes  []Process
	LogDir     string
	StatusFile string
	ConfigHash string
	Clock      clock.WithTicker
	Log        logr.Logger

	mu     sync.Mutex
	status map[string]*ProcessStatus
	ready  map[string]chan struct{} // closed while the process is ready
	// running are the processes that have been started and not yet been waited for.
	running map[string]*os.Process
}

// Run returns when ctx has ended and all children are gone.
func (s *Supervisor) Run(ctx context.Context) error {
	s.status, s.ready = map[string]*ProcessStatus{}, map[string]chan struct{}{}
	for _, p := range s.Processes {
		s.status[p.Name] = &ProcessStatus{Name: p.Name, Since: s.Clock.Now()}
		s.ready[p.Name] = make(chan struct{})
	}
	s.publish()

	// Each process has a context of its own, so that they can be stopped in reverse order of the list.
	cancels := make([]context.CancelFunc, len(s.Processes))
	done := make([]chan struct{}, len(s.Processes))
	for i, p := range s.Processes {
		pctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancels[i], done[i] = cancel, make(chan struct{})
		out, err := openLog(filepath.Join(s.LogDir, p.Name+".log"), maxLogBytes)
		if err != nil {
			cancel()
			return err
		}
		go func() {
			defer close(done[i])
			// The parent death signal is tied to the thread that started the child, so the thread must stay.
			runtime.LockOSThread()
			s.keepRunning(pctx, p, out)
		}()
	}
	<-ctx.Done()
	for i := len(cancels) - 1; i >= 0; i-- {
		cancels[i]()
		<-done[i]
	}
	return nil
}

// Restart ends a process, so that it is started anew. It does nothing to one that doesn't run.
func (s *Supervisor) Restart(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.running[name]; p != nil {
		_ = p.Signal(syscall.SIGTERM) // or it has just ended by itself
	}
}

// runs notes what runs of a name; nil: nothing.
func (s *Supervisor) runs(name string, p *os.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = map[string]*os.Process{}
	}
	s.running[name] = p
}

// keepRunning starts p again whenever it ends.
func (s *Supervisor) keepRunning(ctx context.Context, p Process, out *logFile) {
	var delays backoff
	for {
		if !s.waitFor(ctx, p) {
			return
		}
		started := s.Clock.Now()
		exit := s.runOnce(ctx, p, out)
		if ctx.Err() != nil {
			return
		}
		delay := delays.next(s.Clock.Since(started))
		s.Log.Info("process ended", "process", p.Name, "exit", exit.Error(), "restartIn", delay.String())
		s.update(p.Name, func(st *ProcessStatus) {
			st.PID, st.StartTime, st.Ready, st.LastExit = 0, 0, false, exit.Error()
			st.Waiting, st.Since = "restarts in "+delay.String(), s.Clock.Now()
			st.Restarts++
		})
		select {
		case <-ctx.Done():
			return
		case <-s.Clock.After(delay):
		}
	}
}

// waitFor returns false when ctx ended before the dependencies of p were ready.
func (s *Supervisor) waitFor(ctx context.Context, p Process) bool {
	for _, dep := range p.After {
		s.mu.Lock()
		ready, known := s.ready[dep]
		s.mu.Unlock()
		if !known {
			panic("supervisor: " + p.Name + " waits for unknown process " + dep)
		}
		select {
		case <-ready:
			continue
		default:
		}
		s.update(p.Name, func(st *ProcessStatus) { st.Waiting = "waits for " + dep })
		select {
		case <-ctx.Done():
			return false
		case <-ready:
		}
	}
	return ctx.Err() == nil
}

var errExitedZero = errors.New("exit status 0")

// runOnce returns why the process ended; never nil.
func (s *Supervisor) runOnce(ctx context.Context, p Process, out *logFile) error {
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Args[0] = p.Path
	cmd.Env = append(childEnv(os.Environ()), p.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	s.runs(p.Name, cmd.Process)
	defer s.runs(p.Name, nil)
	startTime, _ := StartTime(cmd.Process.Pid) // 0 when it has already ended
	s.update(p.Name, func(st *ProcessStatus) {
		st.PID, st.StartTime, st.Waiting, st.Since = cmd.Process.Pid, startTime, "", s.Clock.Now()
	})
	pctx, stop := context.WithCancel(ctx)
	probing := make(chan struct{})
	go func() {
		defer close(probing)
		s.probe(pctx, p)
	}()
	err := wait(cmd)
	stop()
	<-probing
	s.setReady(p.Name, false)
	if err == nil {
		return errExitedZero
	}
	return err
}

// wait is cmd.Wait without its wait for a pipe that a grandchild keeps open.
func wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// probe keeps the ready state up to date until ctx ends.
func (s *Supervisor) probe(ctx context.Context, p Process) {
	for {
		pctx, cancel := context.WithTimeout(ctx, probeTimeout)
		err := p.Ready(pctx)
		cancel()
		if ctx.Err() != nil {
			return
		}
		s.setReady(p.Name, err == nil)
		interval := probeFast
		if err == nil {
			interval = probeSlow
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Clock.After(interval):
		}
	}
}

func (s *Supervisor) setReady(name string, ready bool) {
	s.mu.Lock()
	was := s.status[name].Ready
	if ready && !was {
		close(s.ready[name])
	}
	if !ready && was {
		s.ready[name] = make(chan struct{})
	}
	s.mu.Unlock()
	if was != ready {
		s.update(name, func(st *ProcessStatus) { st.Ready, st.Since = ready, s.Clock.Now() })
	}
}

func (s *Supervisor) update(name string, change func(*ProcessStatus)) {
	s.mu.Lock()
	before := *s.status[name]
	change(s.status[name])
	changed := before != *s.status[name]
	s.mu.Unlock()
	if changed {
		s.publish()
	}
}

// publish writes the status file; a failure is logged only, as the processes matter more.
func (s *Supervisor) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	start, _ := StartTime(os.Getpid())
	st := Status{PID: os.Getpid(), StartTime: start, ConfigHash: s.ConfigHash}
	for _, p := range s.Processes {
		st.Processes = append(st.Processes, *s.status[p.Name])
	}
	if err := writeStatus(s.StatusFile, st); err != nil {
		s.Log.Error(err, "writing status")
	}
}

// childEnv is the environment of children: what programs commonly need, and nothing that could be a secret of the user.
func childEnv(env []string) []string {
	keep := []string{"HOME=", "LANG=", "TZ="}
	out := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, kv := range env {
		for _, k := range keep {
			if strings.HasPrefix(kv, k) {
				out = append(out, kv)
			}
		}
	}
	return out
}
