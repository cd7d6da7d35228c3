package server

import (
	"sync"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/console/access"
)

// How many streams one person, by their token, and all of them may have open.
const (
	maxStreams   = 200
	maxStreamsOf = 8
)

// limits count requests and streams.
type limits struct {
	buckets *access.Buckets
	mu      sync.Mutex
	streams map[string]int
	total   int
}

func newLimits(c clock.PassiveClock) *limits {
	return &limits{buckets: access.NewBuckets(c), streams: map[string]int{}}
}

// allow takes one request of somebody; false: they sent too many.
func (l *limits) allow(who string) bool { return l.buckets.Take(who) }

// open begins a stream of somebody; false: there are too many. Call the function when it ends.
func (l *limits) open(who string) (func(), bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= maxStreams || l.streams[who] >= maxStreamsOf {
		return nil, false
	}
	l.total++
	l.streams[who]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.total--
		if l.streams[who]--; l.streams[who] == 0 {
			delete(l.streams, who)
		}
	}, true
}
