package access

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// How much somebody may ask for: so much a second, after so much at once.
const (
	perSecond  = 20
	burst      = 60
	maxBuckets = 10_000
)

// Buckets count requests by who sends them. Make them with NewBuckets.
type Buckets struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	of    map[string]*bucket
}

// bucket holds what is left of a burst.
type bucket struct {
	left float64
	at   time.Time
}

// NewBuckets makes buckets that are full.
func NewBuckets(c clock.PassiveClock) *Buckets {
	return &Buckets{clock: c, of: map[string]*bucket{}}
}

// Take takes one request of somebody; false: they sent too many.
func (b *Buckets) Take(who string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	mine := b.of[who]
	if mine == nil {
		makeRoom(b.of, maxBuckets)
		mine = &bucket{burst, now}
		b.of[who] = mine
	}
	mine.left, mine.at = min(burst, mine.left+now.Sub(mine.at).Seconds()*perSecond), now
	if mine.left < 1 {
		return false
	}
	mine.left--
	return true
}

// makeRoom drops some entry when there is no room for another. Not all of them: one who sends many names would have those of others forgotten.
func makeRoom[K comparable, V any](m map[K]V, limit int) {
	for k := range m {
		if len(m) < limit {
			return
		}
		delete(m, k)
	}
}

// sourceOf is whom a request comes from, as far as its address tells. With IPv6 one machine has as many addresses as it likes, in one network.
func sourceOf(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	addr := from.Addr().Unmap()
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	network, _ := addr.WithZone("").Prefix(bits) // fewer bits than it has
	return network.String()
}
