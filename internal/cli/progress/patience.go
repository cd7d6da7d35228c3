package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// sayUnansweredAfter is how long an API server may be away before that is said: a restart is often over by then.
const sayUnansweredAfter = 5 * time.Second

// Patience is for waits that print in a way of their own: what Printer.Until bears, they bear with it. It is not safe for concurrent use.
type Patience struct {
	out   io.Writer
	clock clock.PassiveClock

	answered           bool
	failingFor, saidAt time.Time
}

// NewPatience returns a Patience that says on out that the API server doesn't answer. A nil clock is the real one.
func NewPatience(out io.Writer, clk clock.PassiveClock) *Patience {
	if clk == nil {
		clk = clock.RealClock{}
	}
	return &Patience{out: out, clock: clk}
}

// Bear takes what a look returned, and returns the errors that end the wait. With nil for an error the wait goes on: the API server answered before,
// and may do so again. One that never answered may have the wrong address.
func (p *Patience) Bear(ctx context.Context, err error) error {
	switch {
	case err == nil:
		p.answered, p.failingFor, p.saidAt = true, time.Time{}, time.Time{}
		return nil
	case !p.answered || ctx.Err() != nil || !passing(err):
		return err
	}
	now := p.clock.Now()
	if p.failingFor.IsZero() {
		p.failingFor = now
	}
	if now.Sub(p.failingFor) >= sayUnansweredAfter && (p.saidAt.IsZero() || now.Sub(p.saidAt) >= sayAgainAfter) {
		fmt.Fprintf(p.out, "the API server hasn't answered for %s: %v; looking again\n", now.Sub(p.failingFor).Round(time.Second), err)
		p.saidAt = now
	}
	return nil
}

// passing tells that a request failed because the API server wasn't there, or had no time. What it refused it refuses again.
func passing(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	var network net.Error // also of a *url.Error, which every failed request is
	return errors.As(err, &network)
}
