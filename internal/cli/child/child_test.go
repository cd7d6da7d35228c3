//go:build unix

package child

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/spf13/cobra"
	clocktesting "k8s.io/utils/clock/testing"

	"hcp.internal/platform/internal/cli/child/childtest"
	"hcp.internal/platform/internal/cli/exit"
)

func TestMain(m *testing.M) {
	childtest.Main(func(cmd *cobra.Command, kubeconfig []byte, args []string) error {
		return Run(cmd, Command{Args: args, Kubeconfig: kubeconfig})
	})
	os.Exit(m.Run())
}

func TestSignals(t *testing.T) { childtest.Run(t) }

func TestRun(t *testing.T) {
	run := func(ctx context.Context, c Command) (string, error) {
		cmd := &cobra.Command{}
		cmd.SetContext(ctx)
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		err := Run(cmd, c)
		return out.String(), err
	}
	for name, tc := range map[string]struct {
		script string
		code   int
	}{
		"When a command succeeds it should do so, too":               {"exit 0", 0},
		"When a command fails it should end with its code":           {"exit 7", 7},
		"When a signal ends a command it should end as a shell does": {"kill -TERM $$", 128 + int(syscall.SIGTERM)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := run(t.Context(), Command{Args: []string{"sh", "-c", tc.script}})
			g.Expect(exit.Code(err)).To(Equal(tc.code))
			g.Expect(err == nil || exit.Silent(err)).To(BeTrue())
		})
	}
	t.Run("When a cache of its own is asked for it should be beside the kubeconfig, and else the user's", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("KUBECACHEDIR", "of-the-user")
		script := []string{"sh", "-c", `echo "${KUBECACHEDIR#"${KUBECONFIG%/*}"}"`}
		g.Expect(run(t.Context(), Command{Args: script, OwnCache: true})).To(Equal("/cache\n"))
		g.Expect(run(t.Context(), Command{Args: script})).To(Equal("of-the-user\n"))
	})
	t.Run("When an interrupt came before the command it should not run", func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		out, err := run(ctx, Command{Args: []string{"echo", "ran"}})
		g.Expect(err).To(MatchError(context.Canceled))
		g.Expect(out).To(BeEmpty())
	})
	t.Run("When there is no such command it should say what to do", func(t *testing.T) {
		_, err := run(t.Context(), Command{Args: []string{"no-such-command"}})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("install it, or give its path")))
	})
}

func TestWait(t *testing.T) {
	t.Run("When a command does not end although it is told to it should be killed", func(t *testing.T) {
		g := NewWithT(t)
		out := gbytes.NewBuffer()
		child := exec.CommandContext(t.Context(), "sh", "-c", "trap '' TERM; echo ready; read line")
		child.Stdout = out
		_, err := child.StdinPipe() // nobody writes to it
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(child.Start()).To(Succeed())
		g.Eventually(out).Should(gbytes.Say("ready"))
		signals, clk, done := make(chan os.Signal), clocktesting.NewFakeClock(time.Now()), make(chan error, 1)
		go func() { done <- wait(child, signals, clk) }()
		signals <- syscall.SIGTERM
		g.Eventually(clk.HasWaiters).Should(BeTrue())
		clk.Step(killAfter)
		g.Eventually(done).Should(Receive(MatchError("signal: killed")))
	})
}
