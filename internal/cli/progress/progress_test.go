package progress

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"
)

// script returns a look that gives the states one after the other, and moves the clock on each time.
func script(clk *testingclock.FakeClock, states ...any) func(context.Context) (State, error) {
	i := -1
	return func(context.Context) (State, error) {
		i = min(i+1, len(states)-1)
		go clk.Step(pollEvery) // the waiter listens only after this returns; a ticker keeps one tick
		if err, ok := states[i].(error); ok {
			return State{}, err
		}
		return states[i].(State), nil
	}
}

func TestUntil(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		states []any
		want   []string
		fail   string
	}{
		"When it is done at once it should print nothing":     {states: []any{Done()}},
		"When the state stays the same it should say it once": {states: []any{Waiting("a"), Waiting("a"), Waiting("b"), Done()}, want: []string{"x: a\n", "x: b\n"}},
		"When a look fails it should go on":                   {states: []any{errors.New("connection refused"), Done()}, want: []string{"x: connection refused\n"}},
		"When waiting can't help it should stop":              {states: []any{Terminal(errors.New("gone"))}, fail: "waiting for x: gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			clk := testingclock.NewFakeClock(time.Unix(0, 0))
			var out bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := New(&out, clk).Until(ctx, "x", script(clk, tc.states...))
			if tc.fail != "" {
				g.Expect(err).To(MatchError(tc.fail))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			lines := bytes.SplitAfter(out.Bytes(), []byte("\n"))
			g.Expect(lines).To(HaveLen(len(tc.want) + 1))
			for i, want := range tc.want {
				g.Expect(string(lines[i])).To(HaveSuffix(want))
			}
		})
	}
}

func TestUntilTimesOut(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	clk := testingclock.NewFakeClock(time.Unix(0, 0))
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	var out bytes.Buffer
	err := New(&out, clk).Until(ctx, "the moon", func(context.Context) (State, error) { return Waiting("it is day"), nil })
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(err).To(MatchError(HavePrefix("timed out after 0s waiting for the moon")))

	ctx, cancel = context.WithCancel(t.Context())
	err = New(&out, clk).Until(ctx, "the moon", func(context.Context) (State, error) { cancel(); return Waiting("it is day"), nil })
	g.Expect(err).To(MatchError(HavePrefix("interrupted after 0s waiting for the moon")))
}
