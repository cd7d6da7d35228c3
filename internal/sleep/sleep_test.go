package sleep_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/sleep"
)

func TestFor(t *testing.T) {
	t.Run("When nothing happens it should wait for as long as it was told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, start := NewWithT(t), time.Now()
			g.Expect(sleep.For(t.Context(), time.Hour)).To(Succeed())
			g.Expect(time.Since(start)).To(Equal(time.Hour))
		})
	})
	t.Run("When its context ends it should say so at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, start := NewWithT(t), time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			g.Expect(sleep.For(ctx, time.Hour)).To(MatchError(context.DeadlineExceeded))
			g.Expect(time.Since(start)).To(Equal(time.Minute))
		})
	})
}
