package connector

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// Limits bound what the target may answer. The defaults are far above what packages need.
type Limits struct {
	// Body of an answer, in bytes. An object in etcd has less than 2 MiB; discovery of a large cluster some.
	Body int64
	// List bounds all pages of a list together, in bytes.
	List int64
	// Error bounds the body of an answer that is an error: it ends up in conditions and logs.
	Error int64
	// Objects of a kind that are watched.
	Objects int
	// Request is how long an answer may take, with its body.
	Request time.Duration
	// Watch is how long a watch may last. Clients ask for 5 to 10 minutes.
	Watch time.Duration
	// WatchRate is how fast events are read in the long run, in bytes a second. Faster ones wait, which costs nothing but delay.
	WatchRate int
}

// DefaultLimits are those of the process.
func DefaultLimits() Limits {
	return Limits{
		Body: 16 << 20, List: 32 << 20, Error: 128 << 10, Objects: 20_000,
		Request: 20 * time.Second, Watch: 20 * time.Minute, WatchRate: 2 << 20,
	}
}

// guard is a transport that keeps the target within Limits and remembers its last trouble.
type guard struct {
	next   http.RoundTripper
	limits Limits
	clock  clock.PassiveClock
	events *rate.Limiter

	mu     sync.Mutex
	last   *Trouble
	lastAt time.Time
	// lists is what is left of Limits.List, by path, for lists that are read page by page.
	lists map[string]int64
}

// watchBurst is how much of a watch is read at once before WatchRate counts.
const watchBurst = 8 << 20

func newGuard(next http.RoundTripper, limits Limits, clk clock.PassiveClock) *guard {
	return &guard{
		next: next, limits: limits, clock: clk, lists: map[string]int64{},
		events: rate.NewLimiter(rate.Limit(limits.WatchRate), watchBurst),
	}
}

// since returns the last trouble if it happened at or after a time, else nil.
func (g *guard) since(t time.Time) *Trouble {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil || g.lastAt.Before(t) {
		return nil
	}
	return g.last
}

func (g *guard) note(t *Trouble) {
	if t == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last, g.lastAt = t, g.clock.Now()
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	watches := query.Get("watch") == "true" || query.Get("watch") == "1"
	if watches && query.Get("sendInitialEvents") == "true" {
		// A list that comes as a stream of events has no bound; clients take this for a server that doesn't know it, and list.
		return streamedListRefused(req), nil
	}
	limit := g.limits.Request
	if watches {
		limit = g.limits.Watch
	}
	ctx, cancel := context.WithTimeout(req.Context(), limit)
	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		g.note(troubleOf(err))
		return nil, err
	}
	if t := troubleOfStatus(resp.StatusCode); t != nil {
		g.note(t)
		if resp.StatusCode < http.StatusBadRequest {
			cancel()
			_ = resp.Body.Close()
			return nil, t
		}
	}
	// Clients sleep as long as the first says, and log the second.
	resp.Header.Del("Retry-After")
	resp.Header.Del("Warning")
	resp.Body = &boundedBody{guard: g, body: resp.Body, ctx: ctx, cancel: cancel, path: req.URL.Path, left: g.bound(req, resp, watches), watch: watches}
	return resp, nil
}

// bound is how many bytes an answer may have.
func (g *guard) bound(req *http.Request, resp *http.Response, watches bool) int64 {
	if resp.StatusCode >= http.StatusBadRequest {
		return g.limits.Error
	}
	if watches || req.Method != http.MethodGet {
		return g.limits.Body
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if req.URL.Query().Get("continue") == "" {
		if _, known := g.lists[req.URL.Path]; !known && len(g.lists) >= maxLists {
			clear(g.lists) // who goes on with a page of before is bounded by the page
		}
		g.lists[req.URL.Path] = g.limits.List
	}
	left, known := g.lists[req.URL.Path]
	if !known {
		left = g.limits.Body
	}
	// Pages of one path that are read at the same time may have taken more than there was.
	return max(0, min(g.limits.Body, left))
}

// maxLists is how many paths are remembered: every object that is read has one.
const maxLists = 4096

func (g *guard) spend(path string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.lists[path]; ok {
		g.lists[path] -= int64(n)
	}
}

// boundedBody is the body of an answer.
type boundedBody struct {
	guard  *guard
	body   io.ReadCloser
	ctx    context.Context // it is that of the request, as http.Response keeps it, too
	cancel context.CancelFunc
	path   string
	left   int64
	watch  bool
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if left := max(0, b.left); !b.watch && int64(len(p)) > left {
		p = p[:left+1] // one more, to tell the end from more
	}
	n, err := b.body.Read(p)
	if b.watch {
		if n > 0 {
			if wait := b.guard.events.WaitN(b.ctx, min(n, watchBurst)); wait != nil {
				return 0, wait
			}
		}
	} else {
		b.left -= int64(n)
		b.guard.spend(b.path, n)
		if b.left < 0 {
			t := misbehaves("an answer is larger than allowed")
			b.guard.note(t)
			return 0, t
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if t := troubleOf(err); t != nil && !b.watch { // watches end all the time
			b.guard.note(t)
		}
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	err := b.body.Close()
	b.cancel()
	return err
}

const refusedStreamedList = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422,` +
	`"message":"sendInitialEvents: Forbidden: lists are read in pages here"}`

func streamedListRefused(req *http.Request) *http.Response {
	return &http.Response{
		Status: "422 Unprocessable Entity", StatusCode: http.StatusUnprocessableEntity, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": []string{"application/json"}}, Request: req,
		Body: io.NopCloser(bytes.NewBufferString(refusedStreamedList)), ContentLength: int64(len(refusedStreamedList)),
	}
}
