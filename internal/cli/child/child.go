// Package child runs commands of the user with a kubeconfig of ours.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/terminal"
)

// killAfter is how long a command may take to end when it is told to.
const killAfter = 10 * time.Second

// Run runs a command with its arguments, on the streams of cmd, with a KUBECONFIG that only the user can read and that is gone when it ends. It returns
// an error with the command's exit code when that isn't 0.
func Run(cmd *cobra.Command, kubeconfig []byte, args []string) error {
	program, err := Find(args[0])
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "hypershift-") // 0700
	if err != nil {
		return fmt.Errorf("making a folder for the kubeconfig: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing in it outlives this process
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	child := exec.CommandContext(cmd.Context(), program, args[1:]...)
	child.Stdin, child.Stdout, child.Stderr = cmd.InOrStdin(), terminal.File(cmd.OutOrStdout()), terminal.File(cmd.ErrOrStderr())
	// Discovery is cached by address, and addresses of ours are used again.
	child.Env = append(os.Environ(), "KUBECONFIG="+file, "KUBECACHEDIR="+filepath.Join(dir, "cache"))
	if runtime.GOOS != "windows" { // which has no signals
		child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	}
	child.WaitDelay = killAfter
	err = child.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() > 0 {
		return exit.With(ended.ExitCode(), nil) // the command has said why
	}
	if err != nil {
		return fmt.Errorf("running %s: %w", args[0], err)
	}
	return nil
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
