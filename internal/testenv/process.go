package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Process is a running program of the bundle.
type Process struct {
	cmd     *exec.Cmd
	LogFile string
	done    chan struct{}
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the process at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// StartProcess runs a program of the bundle (argv[0] = name) with its output in dir/name.log.
// The kernel kills it when this test binary ends, however that happens.
func StartProcess(binary, dir, name string, env []string, args ...string) (*Process, error) {
	logFile := filepath.Join(dir, name+".log")
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(binary, args...)
	cmd.Args[0] = name
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	// Tests look for changes of cached objects in themselves. In a server that would cost a second copy of every object, and comparisons of them.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUBE_CACHE_MUTATION_DETECTOR=") }), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &Process{cmd: cmd, LogFile: logFile, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The death signal is sent when the starting thread ends, so that thread must live as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// Tail returns the last bytes of the process's log, for a failure message.
func (p *Process) Tail() string {
	const tail = 4096
	data, err := os.ReadFile(p.LogFile)
	if err != nil {
		return err.Error()
	}
	if len(data) > tail {
		data = data[len(data)-tail:]
	}
	return string(data)
}

// workPrefix is what the names of test binaries' folders begin with; the process id follows.
const workPrefix = "hcp-testenv-"

// ownDir is this process's folder. A killed test binary that had the same process id may have left one, which is removed before the first use.
var ownDir = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(os.TempDir(), workPrefix+strconv.Itoa(os.Getpid()))
	return dir, os.RemoveAll(dir)
})

// workDir makes this process's folder and removes those that killed test binaries left behind.
func workDir() (string, error) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), workPrefix+"*"))
	for _, dir := range left {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), workPrefix))
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.RemoveAll(dir)
		}
	}
	dir, err := ownDir()
	if err != nil {
		return "", fmt.Errorf("removing what an earlier process has left: %w", err)
	}
	return dir, os.MkdirAll(dir, 0o700)
}
