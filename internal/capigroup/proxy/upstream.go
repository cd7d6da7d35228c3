package proxy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// reloadAfter is how old a token or CA may be before the files are looked at again. Bound tokens are replaced with minutes to spare.
	reloadAfter = 30 * time.Second
	// maxFile bounds the files of a ServiceAccount.
	maxFile = 1 << 20
)

// UpstreamConfig is where the API server is, and who asks it.
type UpstreamConfig struct {
	URL string
	// CAFile is read again when it changes. Empty: the system's roots, or TLS.
	CAFile string
	// TokenFile is sent for callers that bring no credentials. Empty: nobody's.
	TokenFile string
	// TLS, if set, is used as it is, and CAFile isn't: for callers with a client certificate.
	TLS *tls.Config
	// Wrap, if set, is put around each connection to the API server: for credentials that aren't a file's.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Proxy is the HTTP proxy on the way to the API server, as http.Transport has it. Nil: none.
	Proxy func(*http.Request) (*url.URL, error)
	// PingAfter is how long a connection may be silent before the API server is asked whether it is still there, and PingTimeout how long
	// it may take to answer; then everything on the connection fails. Zero: 30 s and 15 s, as client-go has it.
	PingAfter, PingTimeout time.Duration
	Clock                  clock.PassiveClock
}

// Upstream is connections to an API server. Watches have their own: a large list would hold them up.
type Upstream struct {
	cfg  UpstreamConfig
	base *url.URL
	set  atomic.Pointer[transports]

	mu      sync.Mutex
	checked time.Time
	ca      []byte

	tokenMu sync.Mutex
	tokenAt time.Time
	token   string
}

type transports struct{ short, watch, upgrade *connections }

// connections are a transport, and what is wrapped around it.
type connections struct {
	*http.Transport
	via http.RoundTripper
}

// NewUpstream checks the URL and reads the files once.
func NewUpstream(cfg UpstreamConfig) (*Upstream, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" || strings.Trim(base.Path, "/") != "" {
		return nil, fmt.Errorf("upstream %q must be the http or https URL of an API server, without a path", cfg.URL)
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	u := &Upstream{cfg: cfg, base: base}
	if err := u.reload(); err != nil {
		return nil, err
	}
	if cfg.TokenFile != "" {
		if _, err := u.readToken(true); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// current is the transports by the CA of now.
func (u *Upstream) current() *transports {
	if u.cfg.CAFile != "" && u.cfg.TLS == nil && u.mu.TryLock() {
		if u.cfg.Clock.Since(u.checked) > reloadAfter {
			_ = u.reloadLocked() // half-written: the old one serves until the next look
		}
		u.mu.Unlock()
	}
	return u.set.Load()
}

func (u *Upstream) reload() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reloadLocked()
}

func (u *Upstream) reloadLocked() error {
	u.checked = u.cfg.Clock.Now()
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	switch {
	case u.cfg.TLS != nil:
		conf = u.cfg.TLS
	case u.cfg.CAFile != "":
		raw, err := readFile(u.cfg.CAFile)
		if err != nil {
			return fmt.Errorf("reading CA: %w", err)
		}
		if u.set.Load() != nil && bytes.Equal(raw, u.ca) {
			return nil
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(raw) {
			return fmt.Errorf("CA file %s holds no certificate", u.cfg.CAFile)
		}
		conf.RootCAs, u.ca = roots, raw
	}
	old := u.set.Swap(&transports{short: u.connections(conf, true), watch: u.connections(conf, true), upgrade: u.connections(conf, false)})
	if old != nil { // what is under way ends by itself
		old.short.CloseIdleConnections()
		old.watch.CloseIdleConnections()
		old.upgrade.CloseIdleConnections()
	}
	return nil
}

func (u *Upstream) connections(conf *tls.Config, http2 bool) *connections {
	t := newTransport(conf, http2)
	// A server that went away without a word is found out as client-go would.
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: cmp.Or(u.cfg.PingAfter, 30*time.Second), PingTimeout: cmp.Or(u.cfg.PingTimeout, 15*time.Second)}
	t.Proxy = u.cfg.Proxy
	if u.cfg.Wrap == nil {
		return &connections{t, t}
	}
	return &connections{t, u.cfg.Wrap(t)}
}

func newTransport(conf *tls.Config, http2 bool) *http.Transport {
	t := &http.Transport{
		TLSClientConfig: conf.Clone(), DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 64, DisableCompression: true,
		WriteBufferSize: 64 << 10, Protocols: new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(http2)
	return t
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return raw, nil
}

// readToken is the token of now; fresh looks at the file in any case.
func (u *Upstream) readToken(fresh bool) (string, error) {
	u.tokenMu.Lock()
	defer u.tokenMu.Unlock()
	if !fresh && u.token != "" && u.cfg.Clock.Since(u.tokenAt) < reloadAfter {
		return u.token, nil
	}
	raw, err := readFile(u.cfg.TokenFile)
	if err != nil {
		if u.token != "" && !fresh {
			return u.token, nil
		}
		return "", fmt.Errorf("reading token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", errors.New("token file is empty or has more than one line")
	}
	u.token, u.tokenAt = token, u.cfg.Clock.Now()
	return token, nil
}

// tripper sends requests over one of the transports, with our token for callers without one.
type tripper struct {
	u    *Upstream
	pick func(*transports) *connections
}

func (u *Upstream) shortTripper() http.RoundTripper {
	return &tripper{u, func(t *transports) *connections { return t.short }}
}

func (u *Upstream) watchTripper() http.RoundTripper {
	return &tripper{u, func(t *transports) *connections { return t.watch }}
}

func (u *Upstream) upgradeTripper() http.RoundTripper {
	return &tripper{u, func(t *transports) *connections { return t.upgrade }}
}

// RoundTrip implements http.RoundTripper. The one retry is that after 401 with a token of ours, which may have been replaced.
func (t *tripper) RoundTrip(r *http.Request) (*http.Response, error) {
	via := t.pick(t.u.current()).via
	if t.u.cfg.TokenFile == "" || r.Header.Get("Authorization") != "" {
		return via.RoundTrip(r)
	}
	token, err := t.u.readToken(false)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token) // ReverseProxy gave us a request of its own
	resp, err := via.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return resp, err
	}
	fresh, err := t.u.readToken(true)
	if err != nil || fresh == token {
		return resp, nil //nolint:nilerr // the first answer is as good
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return resp, nil //nolint:nilerr // the first answer is as good
		}
	}
	again.Header.Set("Authorization", "Bearer "+fresh)
	_, _ = io.CopyN(io.Discard, resp.Body, smallBody) // so that the connection serves again
	_ = resp.Body.Close()
	return via.RoundTrip(again)
}

// Get asks the API server itself, with no translation. path may have a query. The caller closes the body.
func (u *Upstream) Get(ctx context.Context, path, accept string) (*http.Response, error) {
	return u.Do(ctx, http.MethodGet, path, http.Header{"Accept": {accept}}, nil)
}

// Do sends any request to the API server itself. body may be nil.
func (u *Upstream) Do(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	var content io.Reader = http.NoBody
	if len(body) > 0 {
		content = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, u.base.Scheme+"://"+u.base.Host+path, content)
	if err != nil {
		return nil, fmt.Errorf("building request: %w", err)
	}
	r.Header = header.Clone()
	return u.shortTripper().RoundTrip(r)
}

// Ready asks the API server for its version.
func (u *Upstream) Ready(ctx context.Context) error {
	resp, err := u.Get(ctx, "/version", typeJSON)
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, smallBody)
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking the API server for its version: status %d", resp.StatusCode)
	}
	return nil
}
