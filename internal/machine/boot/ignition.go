package boot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/bounded"
	"hcp.internal/platform/internal/machine/ignite"
)

const (
	// firstRetry and lastRetry are the bounds of the wait between attempts to fetch the config. A machine asks for ever: the
	// endpoint may come up an hour later.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	// refusedRetry is the wait after an answer that a new attempt alone does not change. The user data may be replaced.
	refusedRetry = 30 * time.Second
	// maxUserData bounds the user data. A Secret has at most 1 MiB.
	maxUserData = 2 << 20
)

// provision applies Ignition, however long it takes. It returns an error only when ctx is done.
func provision(ctx context.Context, userData string, w *ignite.Writer, clk clock.Clock, say func(string, ...any)) ([]string, error) {
	before, repeated := "", 0
	for attempt := 0; ; attempt++ {
		result, err := applyOnce(ctx, userData, w, say)
		if err == nil {
			say("ignition: applied %d files, folders and links; units to run: %v", result.Written, result.Units)
			return result.Units, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		delay := retryDelay(attempt, err)
		// The same problem is told once, and then now and again.
		if text := err.Error(); text != before {
			before, repeated = text, 0
			say("ignition: %v; trying again", err)
		} else if repeated++; repeated%12 == 0 {
			say("ignition: still: %v (%d attempts)", err, attempt+1)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-clk.After(delay):
		}
	}
}

// retryDelay doubles from firstRetry to lastRetry. Refusals wait longer, as asking again at once can't help.
func retryDelay(attempt int, err error) time.Duration {
	var status *ignite.StatusError
	if errors.As(err, &status) && status.Code >= 400 && status.Code < 500 &&
		status.Code != http.StatusTooManyRequests && status.Code != http.StatusRequestTimeout && attempt > 8 {
		return refusedRetry
	}
	return min(firstRetry<<min(attempt, 10), lastRetry)
}

// applyOnce reads the user data anew, as its token may have been replaced.
func applyOnce(ctx context.Context, userData string, w *ignite.Writer, say func(string, ...any)) (*ignite.Result, error) {
	data, err := bounded.ReadFile(userData, maxUserData)
	if err != nil {
		return nil, fmt.Errorf("reading the user data: %w", err)
	}
	cfg, err := (&ignite.Renderer{Say: say}).Render(ctx, data)
	if err != nil {
		return nil, err
	}
	say("ignition: got the config")
	return w.Write(ctx, cfg)
}
