package waiting

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

// from is a connection with an address, of which nothing else is used.
type from struct {
	net.Conn
	addr string
}

func (f *from) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.addr)) }

func TestRoom(t *testing.T) {
	g := NewWithT(t)
	r := New(8)
	var flood []net.Conn
	for i := range 10 {
		c := &from{addr: fmt.Sprintf("[2001:db8::%x]:1", i)} // one machine may have many addresses of a network
		flood = append(flood, c)
		if evicted := r.Enter(c); i < 8 {
			g.Expect(evicted).To(BeNil())
		} else {
			g.Expect(evicted).To(BeIdenticalTo(flood[i-8]), "When one source fills the room its oldest should go")
		}
	}
	honest := &from{addr: "10.0.0.1:1"}
	g.Expect(r.Enter(honest)).To(BeIdenticalTo(flood[2]), "When another comes it should get in")
	g.Expect(r.Leave(flood[0])).To(BeFalse())
	g.Expect(r.total).To(Equal(8), "When one that was evicted ends nothing should change")
	for i, c := range append(flood, honest) {
		g.Expect(r.Leave(c)).To(Equal(i > 2), "When one ends that was there it should say so")
	}
	g.Expect(r.total).To(BeZero())
	g.Expect(r.sources).To(BeEmpty())
}
