package process

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// How a process that starts while the API server is away waits for it. One that ends at once is started again by the kubelet, each time later, in the end
// five minutes after the last time: an API server that was away for ten minutes would be back for up to five more before an operator looks at it.
const (
	// oneRequest is how long one request may take.
	oneRequest = 10 * time.Second
	// leastPause and mostPause are the pauses between requests, jitter apart: many processes wait for the same API server.
	leastPause, mostPause = time.Second, 10 * time.Second
	// toldEvery is how often the log says that it still waits.
	toldEvery = 30 * time.Second
)

// await returns once the API server answers, or ctx has ended. What an API server that works would say as well is no reason to wait, such as that it does
// not know who asks; nor is a certificate that isn't trusted.
func await(ctx context.Context, cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout, cfg.QPS = oneRequest, -1 // the pauses are ours
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("setting up the connection to the API server: %w", err)
	}
	// Any path would do: an answer counts, not what it is.
	return until(ctx, clock.RealClock{}, cfg.Host, func(ctx context.Context) error {
		return disco.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
	})
}

func until(ctx context.Context, clk clock.Clock, host string, ask func(context.Context) error) error {
	pauses := wait.Backoff{Duration: leastPause, Factor: 2, Jitter: 0.5, Steps: 1 << 30, Cap: mostPause}
	var last time.Time
	for {
		err := ask(ctx)
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("waiting for the API server at %s: %w", host, err)
		}
		if !away(err) {
			return nil
		}
		if now := clk.Now(); now.Sub(last) >= toldEvery {
			ctrl.LoggerFrom(ctx).Info("waiting for the API server", "host", host, "reason", err.Error())
			last = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API server at %s: %w", host, err)
		case <-clk.After(min(pauses.Step(), mostPause*3/2)):
		}
	}
}

// away says that nobody who could tell more answered.
func away(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return false
	}
	var network net.Error // also what is refused, reset or too late
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded)
}
