package configoperator

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// awaitLongest is how long a hosted API that is just starting is waited for. Then the operator begins all the same, and reports what
	// it meets; it is well below the five minutes after which the kubelet would miss the health check.
	awaitLongest = 2 * time.Minute
	// awaitPause is between two questions. Each makes a starting API server check all that it is made of, and nobody waits for this operator.
	awaitPause = time.Second
	// awaitTimeout is for one answer.
	awaitTimeout = 5 * time.Second
	// readyBytes are enough of an answer to use the connection again.
	readyBytes = 4 << 10
)

// awaitAPI returns when the hosted API is ready, or after longest. This operator is started together with the API server, so that it is
// there at once; before that, its passes could only fail, and each would be reported on the management cluster.
func awaitAPI(ctx context.Context, hosted *rest.Config, clk clock.Clock, longest time.Duration) error {
	c, err := rest.HTTPClientFor(hosted)
	if err != nil {
		return fmt.Errorf("building a client of the hosted cluster: %w", err)
	}
	c.Timeout = awaitTimeout
	target, _, err := rest.DefaultServerUrlFor(hosted)
	if err != nil {
		return fmt.Errorf("reading the address of the hosted API: %w", err)
	}
	url := target.JoinPath("readyz").String()
	for end := clk.Now().Add(longest); clk.Now().Before(end); {
		if saysReady(ctx, c, url) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil // the manager ends at once, too
		case <-clk.After(awaitPause):
		}
	}
	ctrl.Log.Info("the hosted API is not ready; beginning all the same", "waited", longest.String())
	return nil
}

func saysReady(ctx context.Context, c *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	resp, err := c.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, readyBytes))
	return resp.StatusCode == http.StatusOK
}
