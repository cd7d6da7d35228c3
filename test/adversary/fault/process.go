package fault

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"hcp.internal/platform/test/adversary/world"
)

// signal sends a signal to exactly this process: to none that got its number later.
func signal(p world.Process, s unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !p.Alive() { // looked at after it was opened, so that nobody else can be meant
		return syscall.ESRCH
	}
	return unix.PidfdSendSignal(fd, s, nil, 0)
}

func kill(processes []world.Process) error {
	for _, p := range processes {
		if err := signal(p, unix.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing %s, process %d: %w", p.Program, p.PID, err)
		}
	}
	return nil
}

func (f *Faults) stop(processes []world.Process) (undo func() error, err error) {
	undo, err = f.Journal.Do(Harm{Stopped: processes})
	if err != nil {
		return nil, err
	}
	for _, p := range processes {
		if err := signal(p, unix.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			return undo, errors.Join(fmt.Errorf("stopping %s, process %d: %w", p.Program, p.PID, err), undo())
		}
	}
	return undo, nil
}
