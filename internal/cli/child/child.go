// Package child runs commands of the user with a kubeconfig of ours.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/terminal"
)

const (
	// killAfter is how long a command may take to end when it is told to. The file with the kubeconfig has to go before whoever told it loses patience.
	killAfter = 10 * time.Second
	// bySignal is what shells add to the number of the signal that ended a command.
	bySignal = 128
)

// Command is what to run.
type Command struct {
	// Args are a program, which Find looks for, and its arguments.
	Args []string
	// Kubeconfig goes into a file that only the user can read, in $KUBECONFIG.
	Kubeconfig []byte
	// OwnCache keeps what kubectl remembers of a server apart, for as long as the command runs: it goes by the server's address, and some are used again.
	OwnCache bool
}

// Run runs a command on the streams of cmd. Its kubeconfig is gone when Run returns, and until then no signal of [ending] ends this process. It returns an
// error with the command's exit code when that isn't 0; for a command that a signal ended, that is 128 and the signal's number.
func Run(cmd *cobra.Command, c Command) error {
	program, err := Find(c.Args[0])
	if err != nil {
		return err
	}
	signals, release := hold()
	defer release()                             // after the kubeconfig is gone
	dir, err := os.MkdirTemp("", "hypershift-") // 0700
	if err != nil {
		return fmt.Errorf("making a folder for the kubeconfig: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing in it outlives this process
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, c.Kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	if err := cmd.Context().Err(); err != nil {
		return err // interrupted before there was a command that could be
	}
	child := exec.Command(program, c.Args[1:]...) //nolint:noctx // because it decides itself whether an interrupt, which ends the context, ends it
	child.Stdin, child.Stdout, child.Stderr = cmd.InOrStdin(), terminal.File(cmd.OutOrStdout()), terminal.File(cmd.ErrOrStderr())
	child.Env = append(os.Environ(), "KUBECONFIG="+file)
	if c.OwnCache {
		child.Env = append(child.Env, "KUBECACHEDIR="+filepath.Join(dir, "cache"))
	}
	child.WaitDelay = killAfter
	if err := child.Start(); err != nil {
		return fmt.Errorf("running %s: %w", c.Args[0], err)
	}
	return result(c.Args[0], wait(child, signals, clock.RealClock{}))
}

// wait returns what a command ends with. Signals that ask for the end are passed on; a command that goes on regardless is killed after a while.
func wait(child *exec.Cmd, signals <-chan os.Signal, clk clock.Clock) error {
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	var late <-chan time.Time
	for {
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			if s == os.Interrupt {
				continue // a terminal sends it to the command itself, which would take a second one for impatience
			}
			_ = child.Process.Signal(s) // fails when it has just ended
			if late == nil {
				late = clk.After(killAfter)
			}
		case <-late:
			_ = child.Process.Kill()
		}
	}
}

// result is the error of a program that ended with err.
func result(program string, err error) error {
	var ended *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &ended):
		return fmt.Errorf("running %s: %w", program, err)
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exit.With(bySignal+int(status.Signal()), nil)
	}
	return exit.With(max(ended.ExitCode(), exit.Failed), nil) // the command has said why
}

// Find looks for a program on the PATH, then beside this one.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if self, selfErr := os.Executable(); selfErr == nil && filepath.Base(name) == name {
		if beside, besideErr := exec.LookPath(filepath.Join(filepath.Dir(self), name)); besideErr == nil {
			return beside, nil
		}
	}
	return "", fmt.Errorf("finding the command: %w; install it, or give its path", err)
}
