package server

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// maxDetails is how many pages are read from the API server at a time, maxDetailsOf how many of them for one person: somebody whose pages take long leaves
	// room for others.
	maxDetails   = 16
	maxDetailsOf = 4
	// placeTime bounds the wait for a place.
	placeTime = 5 * time.Second
)

// places are what pages that are read from the API server take: one of a person's own, and one of all. Who waits for one of their own has none of all.
type places struct {
	all chan struct{}
	mu  sync.Mutex
	of  map[string]*ownPlaces
}

// ownPlaces are those of one person. They are kept while a request of theirs has or awaits one.
type ownPlaces struct {
	taken    chan struct{}
	requests int
}

func newPlaces() *places {
	return &places{all: make(chan struct{}, maxDetails), of: map[string]*ownPlaces{}}
}

// take waits for a place of somebody, for placeTime at most. Call the function when the page has been read.
func (p *places) take(ctx context.Context, who string) (func(), error) {
	wait, stop := context.WithTimeout(ctx, placeTime)
	defer stop()
	own := p.enter(who)
	select {
	case own.taken <- struct{}{}:
	case <-wait.Done():
		p.leave(who, own)
		return nil, cmp.Or(ctx.Err(), error(problem{http.StatusTooManyRequests, "too many of your pages are being read: close a tab, or try again"}))
	}
	select {
	case p.all <- struct{}{}:
	case <-wait.Done():
		<-own.taken
		p.leave(who, own)
		return nil, cmp.Or(ctx.Err(), error(problem{http.StatusServiceUnavailable, "the console is busy reading pages of others: try again"}))
	}
	return func() {
		<-p.all
		<-own.taken
		p.leave(who, own)
	}, nil
}

func (p *places) enter(who string) *ownPlaces {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.of[who]
	if own == nil {
		own = &ownPlaces{taken: make(chan struct{}, maxDetailsOf)}
		p.of[who] = own
	}
	own.requests++
	return own
}

func (p *places) leave(who string, own *ownPlaces) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own.requests--; own.requests == 0 {
		delete(p.of, who)
	}
}

// detail is for reading from the API server, a bounded number of times at once and for a bounded time.
func (s *Server) detail(r *request) (context.Context, func(), error) {
	leave, err := s.places.take(r.Context(), r.viewer.ID)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), detailTime)
	return ctx, func() { cancel(); leave() }, nil
}
