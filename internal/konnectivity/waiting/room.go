// Package waiting holds the connections whose client has not said yet who it is or what it wants, in a number that is bounded and shared fairly
// between the sources that they come from. Servers that anybody can reach use it.
package waiting

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Source is where a connection comes from: its address, and of IPv6 addresses the network of 64 bits, all of which one machine may have. Connections
// through a proxy or a translating load balancer all have one source, and share what it gets.
func Source(c net.Conn) netip.Addr { return SourceAt(Address(c)) }

// SourceAt is the source that has the address.
func SourceAt(addr netip.Addr) netip.Addr {
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return addr
}

// Address is that of the other end, or the zero Addr.
func Address(c net.Conn) netip.Addr {
	if c == nil {
		return netip.Addr{}
	}
	ap, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// Room holds connections. When it is full, the source that has most of them gives up its oldest one: whoever opens many keeps out himself and nobody
// else. Make it with New; its methods may be called concurrently.
type Room struct {
	limit int

	mu      sync.Mutex
	sources map[netip.Addr][]net.Conn // oldest first
	total   int
}

// New is an empty room for so many connections.
func New(limit int) *Room { return &Room{limit: limit, sources: map[netip.Addr][]net.Conn{}} }

// Enter adds a connection, and returns the one that has to be closed for it, if any. That may be the same.
func (r *Room) Enter(c net.Conn) (evicted net.Conn) {
	source := Source(c)
	r.mu.Lock()
	defer r.mu.Unlock()
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

// Leave forgets a connection, and tells whether it was still there: one that was evicted is forgotten already.
func (r *Room) Leave(c net.Conn) bool {
	source := Source(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.sources[source], c)
	if i >= 0 {
		r.drop(source, i)
	}
	return i >= 0
}

func (r *Room) drop(source netip.Addr, i int) {
	r.total--
	if r.sources[source] = slices.Delete(r.sources[source], i, i+1); len(r.sources[source]) == 0 {
		delete(r.sources, source)
	}
}
