package ignite

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	types "github.com/coreos/ignition/v2/config/v3_5/types"
	"github.com/vincent-petithory/dataurl"
)

// userAgent names us to the ignition server.
const userAgent = "machine-init"

// accept is what Ignition sends when it asks for a config.
const accept = "application/vnd.coreos.ignition+json;version=3.5.0, */*;q=0.1"

// StatusError is an answer that is no success.
type StatusError struct{ Code int }

// Error never holds what the server said: it is not ours.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answered %d %s", e.Code, http.StatusText(e.Code))
}

// fetcher reads resources. It is made anew for each set of settings.
type fetcher struct {
	client *http.Client
	log    func(format string, args ...any)
}

// newFetcher takes timeouts, proxy and certificate authorities from a config. These may themselves be resources.
func newFetcher(ctx context.Context, ign types.Ignition, log func(string, ...any)) (*fetcher, error) {
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headersTimeout,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		DisableKeepAlives:     true,
		Proxy:                 proxyFunc(ign.Proxy),
	}
	if t := ign.Timeouts.HTTPResponseHeaders; t != nil && *t > 0 {
		transport.ResponseHeaderTimeout = time.Duration(min(*t, 3600)) * time.Second
	}
	total := fetchTimeout
	if t := ign.Timeouts.HTTPTotal; t != nil && *t > 0 {
		total = time.Duration(min(*t, 3600)) * time.Second
	}
	f := &fetcher{log: log, client: &http.Client{
		Transport: transport, Timeout: total,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errors.New("more than 10 redirects")
			}
			return nil
		},
	}}
	if len(ign.Security.TLS.CertificateAuthorities) == 0 {
		return f, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if len(ign.Security.TLS.CertificateAuthorities) > maxConfigs {
		return nil, fmt.Errorf("more than %d certificate authorities", maxConfigs)
	}
	for i, ca := range ign.Security.TLS.CertificateAuthorities {
		pem, err := f.bytes(ctx, ca, maxConfig)
		if err != nil {
			return nil, fmt.Errorf("reading ignition.security.tls.certificateAuthorities[%d]: %w", i, err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ignition.security.tls.certificateAuthorities[%d] holds no certificate", i)
		}
	}
	transport.TLSClientConfig.RootCAs = pool
	return f, nil
}

// proxyFunc implements ignition.proxy. Without one, the environment counts for nothing: a machine has none.
func proxyFunc(p types.Proxy) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		host := r.URL.Hostname()
		for _, n := range p.NoProxy {
			if excluded(host, string(n)) {
				return nil, nil
			}
		}
		raw := p.HTTPProxy
		if r.URL.Scheme == "https" {
			raw = p.HTTPSProxy
		}
		if raw == nil || *raw == "" {
			return nil, nil
		}
		return url.Parse(*raw)
	}
}

// excluded tells whether a host is one of noProxy's: "*", an address range, an address, or a domain and what is below it.
func excluded(host, rule string) bool {
	if rule == "*" || strings.EqualFold(host, rule) {
		return true
	}
	if _, network, err := net.ParseCIDR(rule); err == nil {
		ip := net.ParseIP(host)
		return ip != nil && network.Contains(ip)
	}
	domain := strings.TrimPrefix(rule, ".")
	return domain != "" && strings.HasSuffix(strings.ToLower(host), "."+strings.ToLower(domain))
}

// bytes reads a whole resource.
func (f *fetcher) bytes(ctx context.Context, r types.Resource, limit int64) ([]byte, error) {
	var out strings.Builder
	if _, err := f.copy(ctx, &out, r, limit); err != nil {
		return nil, err
	}
	return []byte(out.String()), nil
}

// copy writes a resource to w: uncompressed, verified, and at most limit bytes of it. It returns how many it wrote, also with an error: what was written before one
// must not be used.
func (f *fetcher) copy(ctx context.Context, w io.Writer, r types.Resource, limit int64) (int64, error) {
	body, err := f.open(ctx, r)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	sum, want, err := verification(r.Verification.Hash)
	if err != nil {
		return 0, err
	}
	content := io.LimitReader(body, limit+1)
	if r.Compression != nil && *r.Compression != "" {
		if *r.Compression != "gzip" {
			return 0, fmt.Errorf("compression %q is not supported", *r.Compression)
		}
		z, err := gzip.NewReader(content)
		if err != nil {
			return 0, fmt.Errorf("uncompressing: %w", err)
		}
		defer z.Close()
		content = z
	}
	if sum != nil {
		w = io.MultiWriter(w, sum) // as Ignition does, of what is uncompressed
	}
	n, err := io.Copy(w, io.LimitReader(content, limit+1))
	if err != nil {
		return n, fmt.Errorf("reading: %w", err)
	}
	if n > limit {
		return n, fmt.Errorf("more than the %d bytes that are allowed", limit)
	}
	if sum == nil {
		return n, nil
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return n, fmt.Errorf("the content has another hash than the config says: %s, want %s", got, want)
	}
	return n, nil
}

func verification(h *string) (hash.Hash, string, error) {
	if h == nil || *h == "" {
		return nil, "", nil
	}
	kind, want, _ := strings.Cut(*h, "-")
	switch kind {
	case "sha512":
		return sha512.New(), strings.ToLower(want), nil
	case "sha256":
		return sha256.New(), strings.ToLower(want), nil
	}
	return nil, "", fmt.Errorf("the hash function %q is not supported", kind)
}

func (f *fetcher) open(ctx context.Context, r types.Resource) (io.ReadCloser, error) {
	if r.Source == nil || *r.Source == "" {
		return io.NopCloser(strings.NewReader("")), nil
	}
	u, err := url.Parse(*r.Source)
	if err != nil {
		return nil, errors.New("the source is not a URL") // it may be a huge data URL, and hold a secret
	}
	switch u.Scheme {
	case "data":
		data, err := dataurl.DecodeString(*r.Source)
		if err != nil {
			return nil, errors.New("the data URL can't be decoded")
		}
		return io.NopCloser(strings.NewReader(string(data.Data))), nil
	case "http", "https":
		return f.get(ctx, u, r.HTTPHeaders)
	}
	return nil, fmt.Errorf("sources with scheme %q are not supported: use http, https or data", u.Scheme)
}

func (f *fetcher) get(ctx context.Context, u *url.URL, headers types.HTTPHeaders) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", u.Redacted(), err)
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", accept)
	for _, h := range headers {
		if h.Value != nil {
			request.Header.Set(h.Name, *h.Value)
		}
	}
	answer, err := f.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", u.Redacted(), withoutURL(err))
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("asking %s: %w", u.Redacted(), &StatusError{Code: answer.StatusCode})
	}
	return answer.Body, nil
}

// withoutURL takes off what net/http puts round an error, which repeats the URL.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
