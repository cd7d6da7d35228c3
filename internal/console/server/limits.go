package server

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// How much one person, by their token, and all of them may ask for.
const (
	perSecond    = 20
	burst        = 60
	maxStreams   = 200
	maxStreamsOf = 8
	maxBuckets   = 10_000
)

// limits count requests and streams.
type limits struct {
	clock   clock.PassiveClock
	mu      sync.Mutex
	buckets map[string]*bucket
	streams map[string]int
	total   int
}

// bucket holds what is left of a burst.
type bucket struct {
	left float64
	at   time.Time
}

func newLimits(c clock.PassiveClock) *limits {
	return &limits{clock: c, buckets: map[string]*bucket{}, streams: map[string]int{}}
}

// allow takes one request of somebody; false: they sent too many.
func (l *limits) allow(who string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	b := l.buckets[who]
	if b == nil {
		if len(l.buckets) >= maxBuckets {
			clear(l.buckets)
		}
		b = &bucket{burst, now}
		l.buckets[who] = b
	}
	b.left, b.at = min(burst, b.left+now.Sub(b.at).Seconds()*perSecond), now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

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
