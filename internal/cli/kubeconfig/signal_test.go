//go:build unix

package kubeconfig

import (
	"context"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/cli/child/childtest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	childtest.Main(with)
	os.Exit(testenv.Main(m))
}

func TestSignals(t *testing.T) { childtest.Run(t) }

func TestUntilKept(t *testing.T) {
	t.Run("When an interrupt comes before the command it should end what the command needs", func(t *testing.T) {
		g := NewWithT(t)
		parent, interrupt := context.WithCancel(t.Context())
		ctx, _, stop := untilKept(parent)
		defer stop()
		interrupt()
		g.Eventually(ctx.Done()).Should(BeClosed())
	})
	t.Run("When an interrupt comes while the command runs it should end nothing that the command needs", func(t *testing.T) {
		g := NewWithT(t)
		parent, interrupt := context.WithCancel(t.Context())
		ctx, keep, stop := untilKept(parent)
		g.Expect(keep()).To(BeTrue())
		interrupt()
		g.Expect(ctx.Err()).NotTo(HaveOccurred())
		stop()
		g.Expect(ctx.Err()).To(MatchError(context.Canceled))
	})
}
