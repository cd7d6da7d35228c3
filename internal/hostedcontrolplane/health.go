package hostedcontrolplane

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
)

const (
	// checkTimeout of one request. A request that takes longer would not be called healthy by a user either.
	checkTimeout = 10 * time.Second
	// checkFresh is how long a good answer is believed.
	checkFresh = 30 * time.Second
	// checkEvery is how often a healthy endpoint is checked without anybody asking, so that a pass, which costs much more, need
	// not be made for it.
	checkEvery = time.Minute
	// checkFor is how long one round of checks goes on before it reports that the endpoint does not answer. It hides a load balancer's moment
	// of programming and a single lost packet.
	checkFor = 10 * time.Second
	// maxHealthBody bounds what is read of an answer: /healthz of a real API server has 5 KiB when it fails.
	maxHealthBody = 64 << 10
	// maxFailing bounds how many failing checks a message lists.
	maxFailing = 10
)

// checkBackoff between requests of one round: quick at first, because the API is usually about to come up when the first round starts.
var checkBackoff = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 1 << 30, Cap: time.Second}

// health is what the published endpoint answered last.
type health struct {
	host string
	// err says why the endpoint is not healthy.
	err error
	// dns says why the host's name does not resolve.
	dns error
}

// target is an endpoint to check, as users reach it.
type target struct {
	url, host string
	// dial is the address (host:port) to connect to in place of that of the url. Optional.
	dial string
	// roots is PEM.
	roots string
}

// targetOf reads the endpoint from the administrator's kubeconfig: what users are given is what has to work.
func targetOf(kubeconfig []byte) (target, error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return target{}, fmt.Errorf("reading the kubeconfig of the administrator: %w", err)
	}
	host, _, err := net.SplitHostPort(strings.TrimPrefix(cfg.Host, "https://"))
	if err != nil {
		return target{}, fmt.Errorf("reading the server of the administrator's kubeconfig: %w", err)
	}
	return target{url: cfg.Host + "/healthz", host: host, roots: string(cfg.CAData)}, nil
}

// healthChecker checks the published endpoint in the background, so that no pass waits for it.
type healthChecker struct {
	clock clock.PassiveClock
	// changed is called after a round whose outcome differs from the one before.
	changed func(context.Context)
	// check makes one request; replaced by tests.
	check func(context.Context, target) error
	// lookup resolves a name; replaced by tests.
	lookup func(context.Context, string) error

	mu      sync.Mutex
	target  target
	last    *health
	at      time.Time
	running bool
	later   *time.Timer
}

func newHealthChecker(clk clock.PassiveClock, changed func(context.Context)) *healthChecker {
	return &healthChecker{clock: clk, changed: changed, check: getHealthz, lookup: lookupHost}
}

// Result is the last outcome for t, nil when there is none, and starts a round when the outcome is old or bad. ctx ends the round when the
// process ends.
func (h *healthChecker) Result(ctx context.Context, t target) *health {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.target != t {
		h.target, h.last = t, nil
		if h.later != nil {
			h.later.Stop()
		}
	}
	stale := h.last == nil || h.last.err != nil || h.last.dns != nil || h.clock.Since(h.at) >= checkFresh
	if stale && !h.running {
		h.running = true
		go h.round(ctx, t)
	}
	return h.last
}

func (h *healthChecker) round(ctx context.Context, t target) {
	result := h.probe(ctx, t)
	h.mu.Lock()
	h.running = false
	differs := h.target != t // asked for another target meanwhile
	if !differs {
		differs = h.last == nil || text(h.last.err) != text(result.err) || text(h.last.dns) != text(result.dns)
		h.last, h.at = result, h.clock.Now()
	}
	h.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if differs {
		h.changed(ctx)
	}
	if result.err == nil && result.dns == nil { // an unhealthy one is asked for again by the passes that it causes
		h.checkLater(ctx, t)
	}
}

// checkLater starts a round in checkEvery, unless the target is another one by then or ctx ended.
func (h *healthChecker) checkLater(ctx context.Context, t target) {
	timer := time.AfterFunc(wait.Jitter(checkEvery, jitter), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if ctx.Err() == nil && h.target == t && !h.running {
			h.running = true
			go h.round(ctx, t)
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.later != nil {
		h.later.Stop()
	}
	h.later = timer
}

// probe asks until the endpoint is healthy or checkFor is over.
func (h *healthChecker) probe(ctx context.Context, t target) *health {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	result := &health{host: t.host}
	backoff := checkBackoff
	for {
		if _, err := netip.ParseAddr(t.host); err != nil {
			result.dns = h.lookup(ctx, t.host)
		}
		if err := h.check(ctx, t); err == nil || ctx.Err() == nil || result.err == nil {
			result.err = err // the error of a request that the deadline cut off tells less than the one before
		}
		if result.err == nil {
			return result
		}
		select {
		case <-ctx.Done():
			return result
		case <-time.After(backoff.Step()):
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func lookupHost(ctx context.Context, host string) error {
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		return fmt.Errorf("the name %s of the API cannot be resolved: create a record that points to the load balancer", host)
	}
	return nil
}

// getHealthz asks for /healthz once. It trusts nothing but the roots of the kubeconfig and follows no redirect.
func getHealthz(ctx context.Context, t target) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(t.roots)) {
		return errors.New("the kubeconfig of the administrator holds no certificate authority")
	}
	// A transport per request: a kept connection would hide that new ones are no longer accepted.
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
		DialContext: dialTo(t.dial), TLSHandshakeTimeout: checkTimeout, ResponseHeaderTimeout: checkTimeout, MaxResponseHeaderBytes: maxHealthBody}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", t.url, err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("asking %s: %w", t.url, withoutAddresses(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	err = fmt.Errorf("%s answered %d", t.url, resp.StatusCode)
	if failing := failingChecks(io.LimitReader(resp.Body, maxHealthBody)); len(failing) > 0 {
		err = fmt.Errorf("%w: failing checks: %s", err, strings.Join(failing, ", "))
	}
	return err
}

// dialTo connects to address whatever is asked for; empty: to what is asked for.
func dialTo(address string) func(context.Context, string, string) (net.Conn, error) {
	var d net.Dialer
	return func(ctx context.Context, network, asked string) (net.Conn, error) {
		return d.DialContext(ctx, network, cmp.Or(address, asked))
	}
}

// withoutAddresses drops the addresses of a connection from an error. The local port differs every time, and a condition's message must not.
func withoutAddresses(err error) error {
	var network *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", checkTimeout)
	case errors.As(err, &network):
		return fmt.Errorf("%s: %w", network.Op, network.Err)
	}
	return err
}

// failingChecks reads the names of lines like "[-]etcd failed: reason withheld".
func failingChecks(body io.Reader) []string {
	var names []string
	for lines := bufio.NewScanner(body); lines.Scan() && len(names) < maxFailing; {
		line, ok := strings.CutPrefix(lines.Text(), "[-]")
		name, _, _ := strings.Cut(line, " ")
		if ok && plausibleCheck(name) {
			names = append(names, name)
		}
	}
	return names
}

// plausibleCheck keeps what a hosted API server sends out of conditions unless it looks like the name of a check.
func plausibleCheck(name string) bool {
	if name == "" || len(name) > 100 {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r))
	})
}
