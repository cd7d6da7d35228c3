package server

import (
	"net/netip"
	"sync"
	"time"
)

// Defaults of a Limiter.
const (
	// refusalBurst is what a source may be refused at once: a rack of machines that are faster than their payload.
	refusalBurst = 100
	// refusalRate is how many more it gets in a second without having to wait.
	refusalRate = 20
	// refusalWait is how long everything above that takes. With the limit on connections it also limits how many guesses there can be:
	// 1,024 connections make 2,048 a second, against 2^122 tokens.
	refusalWait = 500 * time.Millisecond
	// maxSources that are remembered. Whoever has more addresses than that is limited by connections alone.
	maxSources = 4096
)

// Limiter says how long a source has to wait for its next refusal. It may be used concurrently.
type Limiter struct {
	mu      sync.Mutex
	sources map[netip.Addr]*bucket
}

// bucket of refusals that come at once.
type bucket struct {
	left float64
	at   time.Time
}

// Wait counts a refusal and returns how long to hold it back. A nil Limiter never waits.
func (l *Limiter) Wait(source netip.Addr, now time.Time) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.sources[source]
	if b == nil {
		l.makeRoom(now)
		b = &bucket{left: refusalBurst, at: now}
		l.sources[source] = b
	}
	if passed := now.Sub(b.at); passed > 0 {
		b.left, b.at = min(b.left+passed.Seconds()*refusalRate, refusalBurst), now
	}
	if b.left < 1 {
		return refusalWait
	}
	b.left--
	return 0
}

// makeRoom forgets sources that have been quiet for so long that they start anew anyway, and, if there are none, any.
func (l *Limiter) makeRoom(now time.Time) {
	if l.sources == nil {
		l.sources = map[netip.Addr]*bucket{}
	}
	if len(l.sources) < maxSources {
		return
	}
	for source, b := range l.sources {
		if now.Sub(b.at) > refusalBurst/refusalRate*time.Second {
			delete(l.sources, source)
		}
	}
	for source := range l.sources {
		if len(l.sources) < maxSources {
			return
		}
		delete(l.sources, source)
	}
}

// sourceOf is the address of a peer; of IPv6 addresses its network of 64 bits, all of which one machine may have.
func sourceOf(remote string) netip.Addr {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	addr := ap.Addr().Unmap().WithZone("")
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return addr
}
