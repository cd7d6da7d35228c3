package server

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// maxConnections at a time. A machine needs one for some milliseconds.
const maxConnections = 1024

// fairListener bounds how many connections there are. When there are too many it closes the oldest one of the source that has the
// most: whoever holds many connections loses them, and somebody who has just come keeps theirs.
type fairListener struct {
	net.Listener
	max int

	mu      sync.Mutex
	count   int
	sources map[netip.Addr]*list.List // of *fairConn, oldest first
}

func newFairListener(l net.Listener, most int) *fairListener {
	return &fairListener{Listener: l, max: most, sources: map[netip.Addr]*list.List{}}
}

// Accept implements net.Listener.
func (l *fairListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &fairConn{Conn: conn, listener: l, source: sourceOf(conn.RemoteAddr().String())}
	if loser := l.add(c); loser != nil {
		_ = loser.Close()
	}
	return c, nil
}

// add returns the connection that has to go, nil if none has.
func (l *fairListener) add(c *fairConn) *fairConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.sources[c.source]
	if own == nil {
		own = list.New()
		l.sources[c.source] = own
	}
	c.element = own.PushBack(c)
	if l.count++; l.count <= l.max {
		return nil
	}
	most := own
	for _, other := range l.sources {
		if other.Len() > most.Len() {
			most = other
		}
	}
	loser, _ := most.Front().Value.(*fairConn)
	l.removeLocked(loser)
	return loser
}

func (l *fairListener) removeLocked(c *fairConn) {
	if c.element == nil {
		return
	}
	own := l.sources[c.source]
	own.Remove(c.element)
	c.element = nil
	l.count--
	if own.Len() == 0 {
		delete(l.sources, c.source)
	}
}

// fairConn gives its place back when it is closed.
type fairConn struct {
	net.Conn
	listener *fairListener
	source   netip.Addr
	element  *list.Element // guarded by listener.mu; nil once removed
}

// Close implements net.Conn.
func (c *fairConn) Close() error {
	c.listener.mu.Lock()
	c.listener.removeLocked(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
