package konnectivity

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// sourceOf is where a connection comes from: its address, and of IPv6 addresses the network of 64 bits, all of which one machine may have. Connections
// through a proxy or a translating load balancer all have one source, and share what it gets.
func sourceOf(c net.Conn) netip.Addr { return sourceAt(remoteAddr(c)) }

// sourceAt is the source that has the address.
func sourceAt(addr netip.Addr) netip.Addr {
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return addr
}

// remoteAddr is the address of the other end, or the zero Addr.
func remoteAddr(c net.Conn) netip.Addr {
	if c == nil {
		return netip.Addr{}
	}
	ap, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// waitingRoom holds the connections whose client isn't known yet. When it is full, the source that has most of them gives up its oldest one: whoever
// opens many keeps out himself and nobody else.
type waitingRoom struct {
	limit int

	mu      sync.Mutex
	sources map[netip.Addr][]net.Conn // oldest first
	total   int
}

// enter adds a connection, and returns the one that has to be closed for it, if any. That may be the same.
func (r *waitingRoom) enter(c net.Conn) (evicted net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sources == nil {
		r.sources = map[netip.Addr][]net.Conn{}
	}
	source := sourceOf(c)
	r.sources[source] = append(r.sources[source], c)
	if r.total++; r.total <= r.limit {
		return nil
	}
	most := source // which is spared only for one that has more
	for other, held := range r.sources {
		if len(held) > len(r.sources[most]) {
			most = other
		}
	}
	evicted = r.sources[most][0]
	r.drop(most, 0)
	return evicted
}

// leave forgets a connection. One that was evicted is forgotten already.
func (r *waitingRoom) leave(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	source := sourceOf(c)
	if i := slices.Index(r.sources[source], c); i >= 0 {
		r.drop(source, i)
	}
}

func (r *waitingRoom) drop(source netip.Addr, i int) {
	r.total--
	if r.sources[source] = slices.Delete(r.sources[source], i, i+1); len(r.sources[source]) == 0 {
		delete(r.sources, source)
	}
}
