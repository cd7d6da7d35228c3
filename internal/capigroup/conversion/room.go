package conversion

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Anybody who reaches the Service may post a review: the API server shows no certificate. What all reviews together may hold is bounded, and one
// address gets half of it, so that it can't keep the API server out.
const (
	// maxReview bounds a review. The API server sends all objects of a list in one; 10,000 Machines are some 100 MB.
	maxReview = 128 << 20
	// maxReviews bounds the bodies of all reviews that are worked on. Decoded and printed they take four times as much.
	maxReviews = 2 * maxReview
	// maxWaiting is how many reviews may wait for room.
	maxWaiting = 128
	// maxWait is how long one waits; the API server gives up after 30 s.
	maxWait = 10 * time.Second
	// readTime and readRate are what the body has to arrive in: some seconds, and as many more as it takes on a slow network of a cluster.
	readTime = 5 * time.Second
	readRate = 16 << 20 // bytes per second
)

var errFull = errors.New("too many reviews at a time")

// room is what reviews take their memory from.
type room struct {
	all *semaphore.Weighted

	mu      sync.Mutex
	waiting int
	sources map[string]*source
}

type source struct {
	share *semaphore.Weighted
	users int
}

func newRoom() *room {
	return &room{all: semaphore.NewWeighted(maxReviews), sources: map[string]*source{}}
}

// enter waits until there is room for size bytes from an address. leave must be called afterwards.
func (r *room) enter(ctx context.Context, address string, size int64) (leave func(), err error) {
	s, err := r.queue(address)
	if err != nil {
		return nil, err
	}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waiting--
	}()
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if s.share.Acquire(ctx, size) != nil {
		r.forget(address, s)
		return nil, errFull
	}
	if r.all.Acquire(ctx, size) != nil {
		s.share.Release(size)
		r.forget(address, s)
		return nil, errFull
	}
	return func() {
		r.all.Release(size)
		s.share.Release(size)
		r.forget(address, s)
	}, nil
}

func (r *room) queue(address string) (*source, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sources[address]
	if s == nil {
		s = &source{share: semaphore.NewWeighted(maxReviews / 2)}
	}
	// One address can't take all places, either.
	if r.waiting >= maxWaiting || s.users >= maxWaiting/2 {
		return nil, errFull
	}
	r.sources[address] = s
	r.waiting++
	s.users++
	return s, nil
}

func (r *room) forget(address string, s *source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(r.sources, address)
	}
}

// admit takes room for the body of a review, and sets the time by which it has to be there. It answers the request itself when there is none.
func (r *room) admit(w http.ResponseWriter, req *http.Request) (leave func(), ok bool) {
	switch {
	case req.ContentLength < 0:
		http.Error(w, "the review needs a Content-Length", http.StatusLengthRequired)
		return nil, false
	case req.ContentLength > maxReview:
		http.Error(w, "the review is too large", http.StatusRequestEntityTooLarge)
		return nil, false
	}
	address, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		address = req.RemoteAddr
	}
	leave, err = r.enter(req.Context(), address, max(1, req.ContentLength))
	if err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return nil, false
	}
	within := readTime + time.Duration(req.ContentLength)*time.Second/readRate
	// Only servers of tests know no deadlines.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within))
	return leave, true
}
