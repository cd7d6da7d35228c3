package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/supervisor"
)

// supervisorProgram is the copy of this program that runs as the supervisor. It is written only while no supervisor runs, so it tells what a running one is.
const supervisorProgram = "hypershift"

// stale says why a running supervisor has to be started anew with what is wanted now; empty: it need not. hash is what it would run, sameProgram tells whether
// it would be the same program. Pods don't notice: they belong to containerd's shims, which outlive the supervisor and its processes.
func stale(running *supervisor.Status, hash string, sameProgram bool) string {
	switch {
	case running.ConfigHash != hash:
		return "what it runs has changed"
	case !sameProgram:
		return "it is of another version of this program"
	}
	return ""
}

// sameContent compares two files. b need not be there, and is another then.
func sameContent(a, b string) (bool, error) {
	sumA, err := digest(a)
	if err != nil {
		return false, err
	}
	sumB, err := digest(b)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return sumA == sumB, err
}

func digest(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, fmt.Errorf("comparing programs: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, fmt.Errorf("comparing programs: reading %s: %w", path, err)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

func (u *Up) stopSupervisor(ctx context.Context, st *supervisor.Status) error {
	if err := syscall.Kill(st.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stopping the supervisor: %w", err)
	}
	return u.display.Until(ctx, func(context.Context) (bool, string) { return !st.Alive(), "the old supervisor to end" })
}

// launch starts a copy of this program as the supervisor, in a session of its own.
// What it ends with, if it does while we wait, is sent to ended.
func (u *Up) launch(p components.Paths, ended chan<- error) error {
	if err := os.MkdirAll(p.Logs(), 0o700); err != nil {
		return fmt.Errorf("creating the folder of logs: %w", err)
	}
	// A copy, because a build replaces the program while the supervisor runs.
	program := p.Bin(supervisorProgram)
	if err := copyFile(u.Executable, program); err != nil {
		return err
	}
	if err := os.Remove(p.Status()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the old status: %w", err)
	}
	logs, err := supervisor.OpenLog(p.SupervisorLog())
	if err != nil {
		return err
	}
	defer logs.Close()
	cmd := exec.Command(program, "local", "supervise", "--state-dir", p.State) //nolint:noctx // because it outlives this command
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = logs, logs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	go func() { ended <- errors.Join(errors.New("unexpectedly"), cmd.Wait()) }()
	return nil
}

// tailBytes is how much of a log goes into an error.
const tailBytes = 1500

// tail reads the end of a log, which may be long: a supervisor writes it for as long as it lives.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	data, err := io.ReadAll(io.NewSectionReader(f, max(0, size-tailBytes), tailBytes))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("creating the folder of programs: %w", err)
	}
	src, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	defer src.Close()
	tmp := to + ".tmp"
	dst, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700)
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	_, err = io.Copy(dst, src)
	if err := errors.Join(err, dst.Close()); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	if err := os.Rename(tmp, to); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}
