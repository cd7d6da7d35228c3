package companion

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// long is for what processes do on a busy machine.
const long = 2 * time.Minute

// output is a buffer that two goroutines may use.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func TestProgram(t *testing.T) {
	start := func(t *testing.T, script string) (out *output, stop func(), ended chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		out, ended = &output{}, make(chan error, 1)
		p := &Program{Path: "/bin/sh", Args: []string{"-c", script}, Output: out}
		go func() { ended <- p.Start(ctx) }()
		t.Cleanup(cancel)
		return out, cancel, ended
	}
	t.Run("When the program ends it should be started again", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "count")
		_, stop, ended := start(t, "echo once >> "+file)
		g.Eventually(func() string { raw, _ := os.ReadFile(file); return string(raw) }, long).Should(HavePrefix("once\nonce\n"))
		stop()
		g.Eventually(ended, long).Should(Receive(BeNil()))
	})
	t.Run("When its manager ends it should be told to, and waited for", func(t *testing.T) {
		g := NewWithT(t)
		out, stop, ended := start(t, `trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.1; done`)
		g.Eventually(out.String, long).Should(ContainSubstring("ready"))
		g.Expect(ended).NotTo(Receive())
		stop()
		g.Eventually(ended, long).Should(Receive(BeNil()))
		g.Expect(out.String()).To(ContainSubstring("told"))
	})
	t.Run("When there is no such program it should go on trying, and its manager with its work", func(t *testing.T) {
		g := NewWithT(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- (&Program{Path: "/none/such"}).Start(ctx) }()
		g.Consistently(ended, "100ms").ShouldNot(Receive())
		stop()
		g.Eventually(ended, long).Should(Receive(BeNil()))
	})
}

func TestPause(t *testing.T) {
	t.Run("When it ends again and again it should be started less and less often, within bounds", func(t *testing.T) {
		g := NewWithT(t)
		for failures := range 100 {
			g.Expect(pause(failures)).To(And(BeNumerically(">=", firstPause/2), BeNumerically("<=", lastPause)))
		}
		g.Expect(pause(50)).To(BeNumerically(">=", lastPause/2))
	})
}
