// Package reaper starts processes and collects every child that ends, also those that were orphaned, as the first process of a
// machine must.
package reaper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Spec says what to start.
type Spec struct {
	Path   string   // absolute
	Args   []string // with the program's name first
	Env    []string
	Dir    string // empty: /
	Output *os.File
}

// Reaper starts processes. Its zero value is ready; Run must be running for processes to be reported as ended.
type Reaper struct {
	mu      sync.Mutex // held while forking too, so that a child can't be collected before it is known
	waiting map[int]chan<- syscall.WaitStatus
}

// Start starts a process in a session of its own. The channel gets its status when it has ended.
func (r *Reaper) Start(s Spec) (pid int, ended <-chan syscall.WaitStatus, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, fmt.Errorf("opening the null device: %w", err)
	}
	defer null.Close()
	dir := s.Dir
	if dir == "" {
		dir = "/"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err = syscall.ForkExec(s.Path, s.Args, &syscall.ProcAttr{
		Dir: dir, Env: s.Env, Files: []uintptr{null.Fd(), s.Output.Fd(), s.Output.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, nil, fmt.Errorf("starting %s: %w", s.Path, err)
	}
	status := make(chan syscall.WaitStatus, 1)
	if r.waiting == nil {
		r.waiting = map[int]chan<- syscall.WaitStatus{}
	}
	r.waiting[pid] = status
	return pid, status, nil
}

// Signal signals a process, and tells whether it was still there.
func (r *Reaper) Signal(pid int, sig syscall.Signal) bool {
	r.mu.Lock() // not collected meanwhile, so the number is still that process's
	defer r.mu.Unlock()
	if _, ok := r.waiting[pid]; !ok {
		return false
	}
	return syscall.Kill(pid, sig) == nil
}

// Run collects children until ctx is done.
func (r *Reaper) Run(ctx context.Context) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	defer signal.Stop(signals)
	for {
		r.collect()
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
	}
}

func (r *Reaper) collect() {
	for {
		r.mu.Lock()
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			r.mu.Unlock()
			continue
		}
		if err != nil || pid <= 0 {
			r.mu.Unlock()
			return
		}
		ended := r.waiting[pid]
		delete(r.waiting, pid)
		r.mu.Unlock()
		if ended != nil {
			ended <- status
		}
	}
}

// Describe says how a process ended, e.g. "exited with 1" or "was killed by signal 9".
func Describe(s syscall.WaitStatus) string {
	if s.Signaled() {
		return fmt.Sprintf("was killed by signal %d", s.Signal())
	}
	return fmt.Sprintf("exited with %d", s.ExitStatus())
}
