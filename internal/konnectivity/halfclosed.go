package konnectivity

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// HalfClosed is how long what passes through is kept at least after one side has ended, while nothing moves. TLS needs moments.
const HalfClosed = time.Minute

// Lull ends what passes through between two sides when one of them has gone and nothing moves any more: the other may never end by itself. One that is slow is
// not cut off as long as it takes something or says something.
type Lull struct {
	moved atomic.Bool // since the last look
	ended atomic.Bool
	quiet bool // at the last look
}

// Moved tells that bytes went either way.
func (l *Lull) Moved() { l.moved.Store(true) }

// Ended tells that one side has said all.
func (l *Lull) Ended() { l.ended.Store(true) }

// Watch calls end when it has found twice, a bound apart, that client has gone or Ended was called, and that nothing moved. It returns then, and when over is closed.
func (l *Lull) Watch(client net.Conn, bound time.Duration, over <-chan struct{}, end func()) {
	ticker := time.NewTicker(bound)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
		}
		// The end of a client isn't read while the other side takes nothing.
		if l.look(hasGone(client)) {
			end()
			return
		}
	}
}

// look tells that nothing moved since the last look but one, for want of a side.
func (l *Lull) look(gone bool) bool {
	before := l.quiet
	l.quiet = !l.moved.Swap(false) && (gone || l.ended.Load())
	return before && l.quiet
}

// hasGone tells that the other end of a connection sends no more, also while something is still to be read of it.
func hasGone(conn net.Conn) bool {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	_ = raw.Control(func(fd uintptr) { gone = hungUp(fd) })
	return gone
}
