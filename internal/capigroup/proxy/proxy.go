package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"hcp.internal/platform/internal/capigroup/translate"
)

// Config is what a Proxy needs.
type Config struct {
	Upstream *Upstream
	// ShowPlatform lets the client reach the platform's own Cluster API under the private name; else it isn't there.
	ShowPlatform bool
	// Verbatim passes everything as it is: for objects that are stored in standard groups.
	Verbatim bool
	// Hosts are names, without port, that requests may be sent to, besides the loopback's. Others are refused: a page in a browser on the
	// same machine could otherwise be talked into using the proxy. See also Local.
	Hosts   []string
	Metrics *Metrics
	Log     *slog.Logger
}

// Proxy is an http.Handler.
type Proxy struct {
	cfg   Config
	hosts map[string]bool
	// They differ in connections to the API server and in buffers: lists have large ones, what is small or waits has small ones.
	short, list, watch, raise *httputil.ReverseProxy
}

// New returns a Proxy.
func New(cfg Config) *Proxy {
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{cfg: cfg, hosts: loopback()}
	for _, h := range cfg.Hosts {
		p.hosts[h] = true
	}
	p.short = p.reverse(cfg.Upstream.shortTripper(), copyBuffers)
	p.list = p.reverse(cfg.Upstream.shortTripper(), listBuffers)
	p.watch = p.reverse(cfg.Upstream.watchTripper(), smallBuffers)
	p.raise = p.reverse(cfg.Upstream.upgradeTripper(), copyBuffers)
	return p
}

func (p *Proxy) reverse(via http.RoundTripper, buffers httputil.BufferPool) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: via, BufferPool: buffers,
		Rewrite:        func(r *httputil.ProxyRequest) { p.outgoing(r) },
		ModifyResponse: p.answer,
		ErrorHandler:   p.failed,
		// What it says is about connections of clients that went away; it has no other use.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// exchange is one request on its way.
type exchange struct {
	request translate.Request
	begun   time.Time
	code    int
	spent   atomic.Int64 // nanoseconds in translation; a body is sent while its answer comes
	reason  string       // of a translation that failed
	yaml    bool         // the answer becomes YAML
}

func (x *exchange) spend(d time.Duration) { x.spent.Add(int64(d)) }

type exchangeKey struct{}

func exchangeOf(r *http.Request) *exchange {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	return x
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status := p.refuse(r); status != nil {
		status.write(w)
		return
	}
	parsed, err := translate.Parse(r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	if err != nil {
		badRequest(err.Error()).write(w)
		return
	}
	tunnel := parsed.Class == translate.ClassTunnel
	if p.cfg.Verbatim {
		parsed.Class, parsed.Path, parsed.Query = translate.ClassTunnel, r.URL.EscapedPath(), r.URL.RawQuery
	} else if parsed.Theirs && !p.cfg.ShowPlatform {
		p.cfg.Metrics.request(r.Method, &parsed, http.StatusNotFound)
		notFound().write(w)
		return
	} else if !p.cfg.ShowPlatform && parsed.DeletesUnseen(r.Method) {
		p.cfg.Metrics.request(r.Method, &parsed, http.StatusMethodNotAllowed)
		newStatus(http.StatusMethodNotAllowed, "MethodNotAllowed", "this proxy hides some of these objects, so they can't be deleted together: delete them one by one").write(w)
		return
	}
	x := &exchange{request: parsed, begun: time.Now()} // a duration for a metric
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	through := p.short
	switch {
	case parsed.Class == translate.ClassTunnel && isUpgrade(r):
		through = p.raise
	case p.cfg.Verbatim && parsed.Watch:
		through = p.watch
	case parsed.Class != translate.ClassTunnel:
		if status := p.prepare(r, x); status != nil {
			p.cfg.Metrics.request(r.Method, &x.request, status.Code)
			status.write(w)
			return
		}
		if parsed.Watch {
			through = p.watch
			p.cfg.Metrics.watches.Add(1)
			defer p.cfg.Metrics.watches.Add(-1)
		}
		if isUpgrade(r) {
			through = p.raise
		}
	case tunnel:
		through = p.watch // it may be a log or a stream of events: each part goes out as it comes
	}
	if through == p.short && parsed.List {
		through = p.list
	}
	defer func() {
		p.cfg.Metrics.request(r.Method, &x.request, x.code)
		p.cfg.Metrics.overhead.observe(time.Duration(x.spent.Load()))
	}()
	if through == p.short || through == p.list {
		w = unflushed{w}
	}
	through.ServeHTTP(w, r)
}

// unflushed keeps ReverseProxy from flushing after each part of an answer of unknown length: that would be one more write, and packet, for
// the two bytes that end a part. What is written is large and goes out by itself, and the rest at the end of the answer.
type unflushed struct{ http.ResponseWriter }

// refuse says what is wrong with a request that is none for us.
func (p *Proxy) refuse(r *http.Request) *status {
	if r.Method == http.MethodConnect {
		return newStatus(http.StatusMethodNotAllowed, "MethodNotAllowed", "this proxy serves an API and does not tunnel")
	}
	if r.URL.Host != "" || r.URL.Scheme != "" {
		return badRequest("the request line must have a path only")
	}
	return strange(r, p.hosts)
}

func isUpgrade(r *http.Request) bool {
	return r.Header.Get("Upgrade") != "" && strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// upgrades tells whether a request may become a connection of another protocol: consoles and the like of API servers behind this one are
// subresources of theirs. Of Cluster API and of what the API server itself has, nothing is but the tunnels.
func upgrades(r *translate.Request) bool {
	return r.Class == translate.ClassObject && r.Group != "" && !r.Mapped() && !r.Watch && r.Name != "" && r.Subresource != ""
}

// prepare gives the request the shape that it needs upstream: what it accepts, and its body.
func (p *Proxy) prepare(r *http.Request, x *exchange) *status {
	accept, ok := acceptable(r.Header.Values("Accept"), &x.request)
	if !ok {
		p.cfg.Metrics.failure("unsupported-content-type")
		return newStatus(http.StatusNotAcceptable, "NotAcceptable", "only application/json is served here")
	}
	if accept.header != "" {
		r.Header.Set("Accept", accept.header)
	}
	x.yaml = accept.yaml
	if !upgrades(&x.request) {
		r.Header.Del("Upgrade") // a watch over a WebSocket would pass as it is
	}
	// The API server would compress what we then had to inflate.
	r.Header.Del("Accept-Encoding")
	r.Header.Del("Expect")
	if tag := r.Header.Get("If-None-Match"); tag != "" && changesTags(&x.request) {
		if tag = plainTag(tag, p.tagSuffix()); tag == "" {
			r.Header.Del("If-None-Match")
		} else {
			r.Header.Set("If-None-Match", tag)
		}
	}
	return p.prepareBody(r, x)
}

// outgoing points a request at the API server.
func (p *Proxy) outgoing(r *httputil.ProxyRequest) {
	x := exchangeOf(r.In)
	base := p.cfg.Upstream.base
	u := *r.Out.URL
	u.Scheme, u.Host = base.Scheme, base.Host
	u.RawPath = x.request.Path
	if path, err := unescapePath(x.request.Path); err == nil {
		u.Path = path
	}
	// ReverseProxy drops what it can't parse from the query; the API server shall judge that.
	u.RawQuery = x.request.Query
	r.Out.URL = &u
	r.Out.Host = base.Host
}

// answer is called with what the API server answered.
func (p *Proxy) answer(resp *http.Response) error {
	x := exchangeOf(resp.Request)
	x.code = resp.StatusCode
	p.cfg.Metrics.headers(resp.Request.Method, &x.request, time.Since(x.begun)) // a duration for a metric
	if resp.StatusCode == http.StatusSwitchingProtocols || x.request.Class == translate.ClassTunnel {
		return nil
	}
	for i, w := range resp.Header["Warning"] {
		resp.Header["Warning"][i] = translate.Warning(w)
	}
	if location := resp.Header.Get("Location"); strings.HasPrefix(location, "/") {
		path, query, ask := strings.Cut(location, "?")
		if back, err := translate.Parse(http.MethodGet, path, query); err == nil {
			path = back.Path
		}
		if ask {
			path += "?" + query
		}
		resp.Header.Set("Location", path)
	}
	if tag := resp.Header.Get("Etag"); tag != "" && changesTags(&x.request) {
		resp.Header.Set("Etag", ourTag(tag, p.tagSuffix()))
	}
	if resp.Request.Method == http.MethodHead || resp.StatusCode == http.StatusNotModified || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	return p.answerBody(resp, x)
}

// failed answers for the API server.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		x.code = 499 // as other proxies count a client that left
		panic(http.ErrAbortHandler)
	}
	if errors.Is(err, errBroken) {
		x.code = http.StatusBadGateway
		p.cfg.Log.Error("Proxy request failed", "method", r.Method, "resource", x.request.Resource, "error", plainError(err))
		panic(http.ErrAbortHandler)
	}
	if x.reason == "invalid-protobuf" && x.request.OpenAPIv2() {
		x.code = http.StatusNotAcceptable // clients fall back to JSON, or to OpenAPI v3
		newStatus(x.code, "NotAcceptable", "this document can't be translated in protobuf; use application/json").write(w)
		return
	}
	if x.reason != "" {
		x.code = http.StatusBadGateway
		p.cfg.Log.Error("Translation error", "resource", x.request.Resource, "type", x.reason)
		newStatus(x.code, "InternalError", "the answer of the API server could not be translated: "+x.reason).write(w)
		return
	}
	if errors.Is(err, translate.ErrInvalid) || errors.Is(err, translate.ErrTooDeep) || errors.Is(err, translate.ErrTooLarge) {
		x.code = http.StatusBadRequest // of the request's body: an answer's has no headers any more that could say so
		badRequest("the body can't be translated: " + errorType(err)).write(w)
		return
	}
	x.code = http.StatusServiceUnavailable
	p.cfg.Log.Error("Proxy request failed", "method", r.Method, "resource", x.request.Resource, "error", plainError(err))
	w.Header().Set("Retry-After", "1")
	newStatus(x.code, "ServiceUnavailable", "the API server of the management cluster could not be reached").write(w)
}

// plainError is an error without the URL of the request, whose query is the client's.
func plainError(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	return fmt.Sprintf("%T", err)
}

func setLength(h http.Header, n int) { h.Set("Content-Length", strconv.Itoa(n)) }
