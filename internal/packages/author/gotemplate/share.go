package gotemplate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// shareSlots is how many renderings run at a time. Each may need a few hundred MiB.
	shareSlots = 2
	// shareBurst is how much time one tenant's renderings may take at once, and shareRate which part of it later on. A rendering that is
	// no attack takes milliseconds.
	shareBurst = 10 * time.Second
	shareRate  = 0.2
	// shareRetry is when to ask again while another rendering of the same tenant runs, times how many have asked, up to shareQueue.
	shareRetry = 100 * time.Millisecond
	shareQueue = 50
	// shareTenants is how many tenants are remembered before those that have used nothing for long are forgotten.
	shareTenants = 1000
)

// Share divides the time for renderings among tenants: one rendering of each at a time, and so much of the time that the others have theirs.
// It is safe for concurrent use. The nil Share lets everything through.
type Share struct {
	clock clock.PassiveClock
	slots chan struct{}

	mu      sync.Mutex
	tenants map[string]*tenant
}

type tenant struct {
	running bool
	// refused is how many have been told to wait since the last rendering ended.
	refused int
	// used is the time that counts against the tenant at the time since.
	used  time.Duration
	since time.Time
}

// NewShare returns a Share for all renderings of a process.
func NewShare(c clock.PassiveClock) *Share {
	return &Share{clock: c, slots: make(chan struct{}, shareSlots), tenants: map[string]*tenant{}}
}

// BusyError says that a tenant has to wait. The rendering did not begin.
type BusyError struct{ After time.Duration }

func (e *BusyError) Error() string {
	return fmt.Sprintf("rendering takes too much time here: it goes on in %s", e.After.Round(time.Millisecond))
}

// Do calls f, which renders something of a tenant: a namespace, or an object of the cluster. It returns *BusyError when the tenant has to wait, and
// the cause of ctx when that ends before there is room.
func (s *Share) Do(ctx context.Context, name string, f func() error) error {
	if s == nil {
		return f()
	}
	if after := s.enter(name); after > 0 {
		return &BusyError{After: after}
	}
	took := time.Duration(0)
	defer func() { s.leave(name, took) }()
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.slots }()
	begin := s.clock.Now()
	defer func() { took = s.clock.Since(begin) }()
	return f()
}

// Wait says how long a tenant would have to wait now, so that nothing is prepared in vain.
func (s *Share) Wait(name string) time.Duration {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wait(s.of(name))
}

func (s *Share) enter(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.of(name)
	after := s.wait(t)
	t.running = t.running || after == 0
	return after
}

// of is a tenant as it is now.
func (s *Share) of(name string) *tenant {
	now := s.clock.Now()
	t := s.tenants[name]
	if t == nil {
		s.forget(now)
		t = &tenant{since: now}
		s.tenants[name] = t
	}
	t.settle(now)
	return t
}

func (s *Share) wait(t *tenant) time.Duration {
	switch {
	case t.used > shareBurst:
		t.refused++
		return time.Duration(float64(t.used-shareBurst)/shareRate) + time.Duration(min(t.refused, shareQueue))*shareRetry
	case t.running:
		t.refused++
		return time.Duration(min(t.refused, shareQueue)) * shareRetry
	}
	return 0
}

func (s *Share) leave(name string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[name]
	t.running, t.refused = false, 0
	t.settle(s.clock.Now())
	t.used += took
}

func (t *tenant) settle(now time.Time) {
	t.used = max(0, t.used-time.Duration(float64(now.Sub(t.since))*shareRate))
	t.since = now
}

func (s *Share) forget(now time.Time) {
	if len(s.tenants) < shareTenants {
		return
	}
	for name, t := range s.tenants {
		if t.settle(now); t.used == 0 && !t.running {
			delete(s.tenants, name)
		}
	}
}
