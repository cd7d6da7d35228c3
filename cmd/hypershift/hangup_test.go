//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

// asWaiting is the variable with which the test binary is a command that waits, and cleans up when it is told to end.
const asWaiting = "HYPERSHIFT_TEST_WAITING"

func init() {
	if os.Getenv(asWaiting) != "" {
		waiting()
		os.Exit(0)
	}
}

// waiting is such a command. A shell that loses its terminal sends another hangup to its jobs, which it sends itself.
func waiting() {
	ctx, stop := interruptible()
	defer stop()
	fmt.Println("ready, heeding", ending())
	<-ctx.Done()
	stop() // as a goroutine does that may not have come to it
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		fmt.Println(err)
	}
	fmt.Println("cleaned up")
}

func TestHangup(t *testing.T) {
	hearing := "exec"
	if signal.Ignored(syscall.SIGHUP) {
		hearing = "exec env --default-signal=HUP" // of GNU; a shell can't
	}
	for name, tc := range map[string]struct {
		within, heeds string
		ends          syscall.Signal
	}{
		"When the terminal goes away it should clean up":                    {hearing, "[interrupt terminated hangup]", syscall.SIGHUP},
		"When it was started to outlive its terminal it should ignore that": {"trap '' HUP; exec", "[interrupt terminated]", syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out := gbytes.NewBuffer()
			cmd := exec.CommandContext(t.Context(), "sh", "-c", tc.within+` "$0"`, os.Args[0])
			cmd.Env = append(os.Environ(), asWaiting+"=yes")
			cmd.Stdout, cmd.Stderr = out, out
			g.Expect(cmd.Start()).To(Succeed())
			g.Eventually(out).Should(gbytes.Say("ready, heeding (.*)\n"))
			g.Expect(string(out.Contents())).To(ContainSubstring(tc.heeds + "\n"))
			g.Expect(cmd.Process.Signal(tc.ends)).To(Succeed())
			g.Expect(cmd.Wait()).To(Succeed(), "it ended without cleaning up")
			g.Expect(out).To(gbytes.Say("cleaned up"))
		})
	}
}
