package konnectivity

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"

	"hcp.internal/platform/internal/testenv"
)

// balancer leads to one of several addresses at random, as a Service does.
func balancer(t testing.TB, backends ...func() string) string {
	t.Helper()
	return serveTCP(t, func(c net.Conn) {
		to, err := net.Dial("tcp", backends[rand.IntN(len(backends))]())
		if err != nil {
			return
		}
		defer to.Close()
		go func() { _, _ = io.Copy(to, c); _ = to.Close() }()
		_, _ = io.Copy(c, to)
	})
}

func fixed(address string) func() string { return func() string { return address } }

func TestSeveralServers(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	var servers []*running
	var backends []func() string
	for i := range 3 {
		s := w.server(func(o *ServerOptions) { o.ID, o.Count = fmt.Sprintf("server-%d", i), 3 })
		servers, backends = append(servers, s), append(backends, fixed(s.back))
	}
	var replaced atomic.Value
	replaced.Store(servers[0].back)
	backends[0] = func() string { return replaced.Load().(string) }
	address := balancer(t, backends...)
	agent, _ := w.agent(address)
	all := func() int {
		n := 0
		for _, s := range servers {
			n += s.agents.count()
		}
		return n
	}
	connected := func() int { have, _ := agent.Connected(); return have }

	t.Run("When there are three servers behind an address the agent should find each once", func(t *testing.T) {
		g := NewWithT(t)
		g.Eventually(connected).Should(Equal(3))
		g.Eventually(all).Should(Equal(3)) // those that turned out to be known went away again
		for _, s := range servers {
			_ = w.mustDial(s.front, echo(t))
		}
	})
	t.Run("When a server is replaced the agent should find the new one and use the others meanwhile", func(t *testing.T) {
		servers[0].stop()
		<-servers[0].done
		_ = w.mustDial(servers[1].front, echo(t))
		servers[0] = w.server(func(o *ServerOptions) { o.ID, o.Count = "server-new", 3 })
		replaced.Store(servers[0].back)
		_ = w.mustDial(servers[0].front, echo(t))
	})
	g.Expect(connected()).To(BeNumerically(">=", 2))
}

// A kube-apiserver that ends serves on for a while, and so does the server beside it. The one in its place has been there since before that.
func TestServerThatEndsSlowly(t *testing.T) {
	const long = 5 * time.Minute // longer than the test takes
	w := newWorld(t)
	var servers []*running
	var backends []func() string
	for i := range 3 {
		s := w.server(func(o *ServerOptions) { o.ID, o.Count, o.DrainTimeout = fmt.Sprintf("server-%d", i), 3, long })
		servers, backends = append(servers, s), append(backends, fixed(s.back))
	}
	var first atomic.Value
	first.Store(servers[0].back)
	backends[0] = func() string { return first.Load().(string) }
	agent, _ := w.agent(balancer(t, backends...))
	connected := func() int { have, _ := agent.Connected(); return have }
	g := NewWithT(t)
	g.Eventually(connected).Should(Equal(3))
	successor := w.server(func(o *ServerOptions) { o.ID, o.Count, o.DrainTimeout = "successor", 3, long })
	first.Store(successor.back)
	conn := w.mustDial(servers[0].front, echo(t))
	servers[0].stop()

	t.Run("When a server begins to end the agent should find the one in its place", func(t *testing.T) {
		NewWithT(t).Eventually(successor.agents.count).Should(Equal(1))
	})
	t.Run("When a server ends its tunnels should go on meanwhile", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(servers[0].done).NotTo(BeClosed())
		_, err := conn.Write([]byte("still here"))
		g.Expect(err).NotTo(HaveOccurred())
		got := make([]byte, 10)
		_, err = io.ReadFull(conn, got)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(Equal("still here"))
	})
	t.Run("When its tunnels have ended it should end", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(conn.Close()).To(Succeed())
		g.Eventually(servers[0].done).Should(BeClosed())
		g.Expect(connected()).To(Equal(3), "it was counted no more")
	})
}

func TestHope(t *testing.T) {
	t.Run("When a server is asked for the first time long after its start it should wait for an agent, and not each time", func(t *testing.T) {
		g := NewWithT(t)
		now := time.Now()
		a := newAgents(1, func() time.Time { return now })
		now = now.Add(time.Hour)
		g.Expect(a.hopeful()).To(Equal(now.Add(hopeAtStart)))
		first := now
		now = now.Add(time.Hour)
		g.Expect(a.hopeful()).To(Equal(first.Add(hopeAtStart)))
	})
}

func TestReconnect(t *testing.T) {
	t.Run("When the server restarts at the same address the agent should come back by itself", func(t *testing.T) {
		w := newWorld(t)
		ports, err := testenv.FreePorts(1) // nobody takes it while the server is away
		if err != nil {
			t.Fatal(err)
		}
		agents, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0]))
		if err != nil {
			t.Fatal(err)
		}
		first := w.serverOn(agents)
		w.agent(first.back)
		conn := w.mustDial(first.front, echo(t))
		first.stop()
		<-first.done
		if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "reset") {
			t.Fatalf("an open tunnel ended with %v", err)
		}
		l, err := net.Listen("tcp", first.back)
		if err != nil {
			t.Fatal(err)
		}
		second := w.serverOn(l)
		_ = w.mustDial(second.front, echo(t))
	})
	t.Run("When an agent leaves politely tunnels that are open should be able to end", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server()
		_, stop := w.agent(s.back)
		conn := w.mustDial(s.front, echo(t))
		stop()
		_, err := conn.Write([]byte("last words"))
		g.Expect(err).NotTo(HaveOccurred())
		got := make([]byte, 10)
		_, err = io.ReadFull(conn, got)
		g.Expect(err).NotTo(HaveOccurred())
		_ = conn.Close()
		g.Eventually(s.agents.count).Should(BeZero())
	})
}

// joinRaw is an agent that does what it likes after it was let in.
func (w *world) joinRaw(address string, headers string) (net.Conn, *bufio.Reader) {
	w.t.Helper()
	pair, pool, err := read(w.ca.issue(agentName, 2 /* client */))
	if err != nil {
		w.t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{*pair}, ServerName: "127.0.0.1"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s\r\n", joinPath, joinProtocol, headers)
	return conn, bufio.NewReader(conn)
}

const honest = agentIDHeader + ": evil\r\n" + identifiersHeader + ": default-route=true\r\n"

func TestHostileAgents(t *testing.T) {
	for name, behave := range map[string]func(net.Conn){
		"When an agent sends garbage the server should drop it and go on": func(c net.Conn) { _, _ = c.Write([]byte(strings.Repeat("\x00garbage", 5000))) },
		"When an agent never answers the server should use another":       func(net.Conn) {},
		"When an agent floods with settings the server should go on": func(c net.Conn) {
			framer := http2.NewFramer(c, nil)
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			for framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}) == nil {
			}
		},
		"When an agent opens streams of its own the server should drop it": func(c net.Conn) {
			framer := http2.NewFramer(c, nil)
			_ = framer.WriteSettings()
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 2, BlockFragment: []byte{0x82}, EndHeaders: true})
			_ = framer.WriteData(1, false, make([]byte, 10_000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			s := w.server()
			conn, reader := w.joinRaw(s.back, honest)
			resp, err := http.ReadResponse(reader, nil)
			g.Expect(err).NotTo(HaveOccurred())
			defer resp.Body.Close()
			g.Expect(resp.StatusCode).To(Equal(http.StatusSwitchingProtocols))
			go behave(conn)
			w.agent(s.back)
			g.Eventually(func() int { return s.agents.count() }).Should(BeNumerically(">=", 1))
			where := echo(t)
			for range 3 {
				_ = w.mustDial(s.front, where)
			}
		})
	}
	t.Run("When the request to join is malformed the server should refuse it", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server()
		for headers, want := range map[string]int{
			"": http.StatusBadRequest,
			agentIDHeader + ": x\r\n" + identifiersHeader + ": nonsense=1\r\n":                                   http.StatusBadRequest,
			agentIDHeader + ": " + strings.Repeat("x", maxIDLength+1) + "\r\n":                                   http.StatusBadRequest,
			agentIDHeader + ": x\r\n" + identifiersHeader + ": " + strings.Repeat("ipv4=10.0.0.1&", 40) + "\r\n": http.StatusBadRequest,
			agentIDHeader + ": x\r\nX-Big: " + strings.Repeat("x", 64<<10) + "\r\n":                              http.StatusRequestHeaderFieldsTooLarge,
		} {
			_, reader := w.joinRaw(s.back, headers)
			resp, err := http.ReadResponse(reader, nil)
			g.Expect(err).NotTo(HaveOccurred())
			defer resp.Body.Close()
			g.Expect(resp.StatusCode).To(Equal(want))
		}
		g.Expect(s.agents.count()).To(BeZero())
	})
	t.Run("When clients without certificates pile up honest ones should still get in", func(t *testing.T) {
		w := newWorld(t)
		s := w.server()
		for range maxHandshakes + 50 {
			c, err := net.Dial("tcp", s.back)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
		}
		w.agent(s.back)
		NewWithT(t).Eventually(s.agents.count).WithTimeout(handshakeTimeout + 10*time.Second).Should(Equal(1))
	})
}

func TestCandidates(t *testing.T) {
	first := func(int) int { return 0 }
	named := func(id, identifiers, address string, suspect bool) *session {
		ids, err := ParseIdentifiers(identifiers)
		if err != nil {
			t.Fatal(err)
		}
		s := &session{id: id, ids: ids, address: address, source: netip.MustParseAddr(address)}
		s.suspect.Store(suspect)
		return s
	}
	order := func(a *agents, host string) string {
		var ids []string
		for _, s := range a.candidates(host, first) {
			ids = append(ids, s.id)
		}
		return strings.Join(ids, ",")
	}
	a := newAgents(10, time.Now)
	for _, s := range []*session{
		named("default", "default-route=true", "10.0.0.5", false), named("other", "ipv4=10.0.0.9", "10.0.0.9", false),
		named("claims", "ipv4=10.0.0.1&ipv4=10.0.0.5&host=Registry.Example.com", "10.0.0.1", false), named("slow", "default-route=true", "10.0.0.7", true),
	} {
		NewWithT(t).Expect(a.add(s)).To(BeNil())
	}
	g := NewWithT(t)
	g.Expect(order(a, "10.0.0.1")).To(Equal("claims,default,slow"), "When an agent claims the host that it is on it should be first")
	g.Expect(order(a, "registry.example.com")).To(Equal("default,claims,slow"), "When it claims a name it should be one of many")
	g.Expect(order(a, "10.0.0.5")).To(Equal("default,claims,slow"), "When it claims another's address it should be one of many")
	g.Expect(order(a, "10.0.0.2")).To(Equal("default,slow"), "When nobody does it should be default ones, doubtful ones last")
}

// greedy is a worker that opens as many sessions as it can.
func greedy(a *agents, n int) (last *session) {
	for range n {
		last = &session{id: "greedy", ids: Identifiers{Default: true}, source: netip.MustParseAddr("10.0.0.66")}
		a.add(last)
	}
	return last
}

func TestGreedyAgents(t *testing.T) {
	honest := func(i int) *session {
		return &session{id: "honest", ids: Identifiers{Default: true}, source: netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})}
	}
	t.Run("When one source has all sessions others should still get in", func(t *testing.T) {
		g := NewWithT(t)
		a := newAgents(50, time.Now)
		greedy(a, 60)
		g.Expect(a.count()).To(Equal(50))
		for i := range 20 {
			evicted := a.add(honest(i))
			g.Expect(evicted).NotTo(BeNil())
			g.Expect(evicted.id).To(Equal("greedy"))
		}
		g.Expect(a.count()).To(Equal(50))
		more := &session{id: "greedy", source: netip.MustParseAddr("10.0.0.66")}
		g.Expect(a.add(more).id).To(Equal("greedy"), "When it wants more it should give one of its own")
	})
	t.Run("When one source has most sessions it should get one share of the traffic", func(t *testing.T) {
		g := NewWithT(t)
		a := newAgents(2000, time.Now)
		greedy(a, 1000)
		for i := range 3 {
			a.add(honest(i))
		}
		random, asked := rand.New(rand.NewPCG(1, 2)), 0
		for range 1000 {
			list := a.candidates("10.96.0.10", random.IntN)
			g.Expect(list).To(HaveLen(maxAttempts))
			times := 0
			for _, s := range list {
				if s.id == "greedy" {
					times++
				}
			}
			g.Expect(times).To(BeNumerically("<=", 1), "An agent that swallows should not be asked twice for one tunnel")
			if list[0].id == "greedy" {
				asked++
			}
		}
		g.Expect(asked).To(BeNumerically("~", 250, 60))
	})
	t.Run("When all come through one address they should be tried one after the other", func(t *testing.T) {
		a := newAgents(10, time.Now)
		greedy(a, 5)
		NewWithT(t).Expect(a.candidates("10.96.0.10", rand.IntN)).To(HaveLen(maxAttempts))
	})
}

func TestExplain(t *testing.T) {
	g := NewWithT(t)
	for err, want := range map[error]int{
		errForbidden{allowed(netip.MustParseAddr("127.0.0.1"))}: http.StatusForbidden,
		context.DeadlineExceeded:                                http.StatusGatewayTimeout,
		os.ErrDeadlineExceeded:                                  http.StatusGatewayTimeout,
		errors.New("anything"):                                  http.StatusBadGateway,
	} {
		status, reason := explain(err)
		g.Expect(status).To(Equal(want), "When %v it should be that status", err)
		g.Expect(reason).NotTo(BeEmpty())
	}
}

func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"10.0.0.1:443", "[::1]:1", "a.b:65535", "[fe80::1%eth0]:1", ":1", "x:+1", "\x00:1", "127.1:80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, authority string) {
		to, err := parseTarget(authority)
		if err != nil {
			return
		}
		again, err := parseTarget(to.String())
		if err != nil || again != to {
			t.Fatalf("%q is read as %v, and that as %v, %v", authority, to, again, err)
		}
		if strings.ContainsAny(to.host, " \r\n\x00/?#@%") {
			t.Fatalf("%q leads to host %q", authority, to.host)
		}
	})
}

func FuzzIdentifiers(f *testing.F) {
	for _, seed := range []string{"default-route=true", "ipv4=10.0.0.1&ipv6=::1", "host=a.b&host=c", "%zz", "cidr=10.0.0.0/8"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids, err := ParseIdentifiers(text)
		if err == nil && len(ids.Hosts) > maxIdentifiers {
			t.Fatal("more hosts than allowed")
		}
	})
}

// FuzzAgent gives the server's end of an agent's connection arbitrary bytes.
func FuzzAgent(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88"))
	transport, err := newTransport(time.Second)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs := net.Pipe()
		go func() {
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			_, _ = theirs.Write(data)
			_ = theirs.Close()
		}()
		gone := make(chan struct{})
		watched := &notifyClose{Conn: ours, gone: func() { close(gone) }}
		conn, err := transport.NewClientConn(watched)
		if err != nil {
			_ = ours.Close()
			return
		}
		s := &session{conn: conn, closed: func() { _ = watched.Close() }}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if tunnel, err := s.open(ctx, target{"10.0.0.1", 1}); err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(tunnel, 1<<20))
			_ = tunnel.Close()
		}
		s.closed()
		select {
		case <-gone:
		case <-time.After(30 * time.Second):
			t.Fatal("the connection stays")
		}
	})
}
