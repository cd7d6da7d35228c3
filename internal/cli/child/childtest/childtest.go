//go:build unix

// Package childtest checks how a command deals with signals while it runs a program of the user.
//
// Signals concern a whole process, so the test binary is started again, as the command, which starts it once more, as the program.
package childtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/cli/exit"
)

const (
	// role is the variable that says what a process of the test binary is to be.
	role      = "CHILDTEST_ROLE"
	asCommand = "command"
	asProgram = "program"
	// ended is the exit code of the program when it is told to end.
	ended = 3
)

// Main plays the part for which the test binary was started. It is to be called before any test runs, and returns in a process that is to run tests.
// run is what the command does to run a program.
func Main(run func(cmd *cobra.Command, kubeconfig []byte, args []string) error) {
	switch os.Getenv(role) {
	case asCommand:
		_ = os.Setenv(role, asProgram) // never fails for such a name
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // as cmd/hypershift does
		cmd := &cobra.Command{}
		cmd.SetContext(ctx)
		os.Exit(exit.Code(run(cmd, []byte("an administrator's key"), []string{os.Args[0]})))
	case asProgram:
		os.Exit(program())
	}
}

// program tells of the signals that it gets, and goes on after an interrupt, as a shell does. It ends with its input at the latest.
func program() int {
	ignores := signal.Ignored(syscall.SIGHUP)
	signals, gone := make(chan os.Signal, 10), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	kubeconfig, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	fmt.Printf("ready with %s (%v), ignoring hangups: %v\n", kubeconfig, err, ignores)
	for {
		select {
		case s := <-signals:
			fmt.Printf("got %v\n", s)
			if s != os.Interrupt {
				return ended
			}
		case <-gone:
			return exit.Failed
		}
	}
}

// command is a running one.
type command struct {
	process *exec.Cmd
	out     *gbytes.Buffer
	// temp is where it keeps temporary files.
	temp string
}

// hearing begins a line that starts a program which a hangup reaches, also where the tests were started by nohup.
func hearing() string {
	if signal.Ignored(syscall.SIGHUP) {
		return "exec env --default-signal=HUP" // of GNU; a shell can't
	}
	return "exec"
}

// start starts the command, and returns when its program runs. within is the beginning of a line of a shell that starts it.
func start(t *testing.T, within string) *command {
	t.Helper()
	g := NewWithT(t)
	c := &command{out: gbytes.NewBuffer(), temp: t.TempDir()}
	c.process = exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", within+` "$0"`, os.Args[0])
	c.process.Env = append(os.Environ(), role+"="+asCommand, "TMPDIR="+c.temp)
	c.process.Stdout, c.process.Stderr = c.out, c.out
	c.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what a terminal would send it to
	input, err := c.process.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.process.Start()).To(Succeed())
	t.Cleanup(func() { _ = input.Close() }) // the program ends, also when the command doesn't wait for it any more
	g.Eventually(c.out).Should(gbytes.Say("ready with an administrator's key"))
	return c
}

// expectEnd waits for the command, which has to end with the code of its program and leave nothing.
func (c *command) expectEnd(g *WithT, said string) {
	g.Eventually(c.out).Should(gbytes.Say(said))
	_ = c.process.Wait() // the code tells
	g.Expect(c.process.ProcessState.ExitCode()).To(Equal(ended), c.process.ProcessState.String())
	left, err := os.ReadDir(c.temp)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeEmpty())
}

// Run checks the command whose Main the test binary calls.
func Run(t *testing.T) {
	for name, s := range map[string]syscall.Signal{
		"When the terminal goes away it should tell the program, wait for it and remove the kubeconfig":    syscall.SIGHUP,
		"When it is told to end it should tell the program, wait for it and remove the kubeconfig as well": syscall.SIGTERM,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := start(t, hearing())
			g.Expect(c.out).To(gbytes.Say("ignoring hangups: false"))
			g.Expect(syscall.Kill(c.process.Process.Pid, s)).To(Succeed())
			c.expectEnd(g, "got "+s.String())
		})
	}
	t.Run("When a person interrupts it again and again it should leave it to the program whether to end", func(t *testing.T) {
		g := NewWithT(t)
		c := start(t, hearing())
		for range 3 {
			g.Expect(syscall.Kill(-c.process.Process.Pid, syscall.SIGINT)).To(Succeed())
			g.Eventually(c.out).Should(gbytes.Say("got interrupt"))
		}
		g.Expect(syscall.Kill(c.process.Process.Pid, syscall.SIGTERM)).To(Succeed())
		c.expectEnd(g, "^\ngot terminated") // without another interrupt: a terminal sends it to the program itself
	})
	t.Run("When it was started to outlive its terminal it should go on without it", func(t *testing.T) {
		g := NewWithT(t)
		c := start(t, "trap '' HUP; exec")
		g.Expect(c.out).To(gbytes.Say("ignoring hangups: true"))
		g.Expect(syscall.Kill(c.process.Process.Pid, syscall.SIGHUP)).To(Succeed())
		g.Expect(syscall.Kill(c.process.Process.Pid, syscall.SIGTERM)).To(Succeed())
		c.expectEnd(g, "^\ngot terminated")
	})
}
