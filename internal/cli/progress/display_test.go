package progress

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
)

func TestDisplay(t *testing.T) {
	t.Run("When there is no terminal it should print one line for each change, and say again what lasts", func(t *testing.T) {
		g := NewWithT(t)
		clk := testclock.NewFakeClock(time.Unix(0, 0))
		var out bytes.Buffer
		d := NewDisplay(&out, false, clk)
		g.Expect(d.Do(t.Context(), "starting", func(_ context.Context, say func(string, ...any)) error {
			say("a")
			say("a")
			say("b %d", 1)
			clk.Step(quietFor)
			say("b %d", 1)
			return nil
		})).To(Succeed())
		g.Expect(out.String()).To(Equal("  … starting (0s): a\n  … starting (0s): b 1\n  … starting (30s): b 1\nok  starting (30s)\n"))
	})
	t.Run("When only numbers change it should say them now and then", func(t *testing.T) {
		g := NewWithT(t)
		clk := testclock.NewFakeClock(time.Unix(0, 0))
		var out bytes.Buffer
		d := NewDisplay(&out, false, clk)
		d.Number(2)
		g.Expect(d.Do(t.Context(), "building", func(_ context.Context, say func(string, ...any)) error {
			for i := range 70 {
				say("compiling, %d of 70 packages, about %s left", i+1, time.Duration(70-i)*time.Second)
				clk.Step(time.Second)
			}
			say("linking")
			return nil
		})).To(Succeed())
		g.Expect(d.Do(t.Context(), "ending", func(context.Context, func(string, ...any)) error { return nil })).To(Succeed())
		g.Expect(out.String()).To(Equal("  … [1/2] building (0s): compiling, 1 of 70 packages, about 1m10s left\n" +
			"  … [1/2] building (30s): compiling, 31 of 70 packages, about 40s left\n" +
			"  … [1/2] building (1m0s): compiling, 61 of 70 packages, about 10s left\n" +
			"  … [1/2] building (1m10s): linking\nok  [1/2] building (1m10s)\nok  [2/2] ending (0s)\n"))
	})
	t.Run("When a task fails it should mark it and name it in the error", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		d := NewDisplay(&out, true, testclock.NewFakeClock(time.Unix(0, 0)))
		err := d.Do(t.Context(), "starting", func(context.Context, func(string, ...any)) error { return errors.New("broken") })
		g.Expect(err).To(MatchError("starting: broken"))
		g.Expect(out.String()).To(HaveSuffix("\r\033[K!!  starting (0s)\n"))
	})
	t.Run("When the time is over it should say what was missing and why it ended", func(t *testing.T) {
		g := NewWithT(t)
		d := NewDisplay(&bytes.Buffer{}, false, clock.RealClock{})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the supervisor has ended"))
		err := d.Do(ctx, "starting", func(ctx context.Context, _ func(string, ...any)) error {
			return d.Until(ctx, func(context.Context) (bool, string) { return false, "etcd" })
		})
		g.Expect(err).To(MatchError("starting: waiting for etcd: the supervisor has ended"))
	})
	t.Run("When a line is to stay it should be printed as it is, and the task's line drawn again", func(t *testing.T) {
		g := NewWithT(t)
		clk := testclock.NewFakeClock(time.Unix(0, 0))
		for _, tty := range []bool{false, true} {
			var out bytes.Buffer
			d := NewDisplay(&out, false, clk)
			d.begin("tour")
			d.tty = tty // only now, without the animation, which writes when it likes
			d.Show("$ %s", "ls")
			if tty {
				g.Expect(out.String()).To(Equal("\r\033[K    $ ls\n\r\033[K  … tour (0s)"))
			} else {
				g.Expect(out.String()).To(Equal("    $ ls\n"))
			}
		}
	})
	t.Run("When a line is longer than a terminal it should be cut", func(t *testing.T) {
		NewWithT(t).Expect([]rune(truncate(strings.Repeat("ä", 500)))).To(HaveLen(lineWidth))
	})
}
