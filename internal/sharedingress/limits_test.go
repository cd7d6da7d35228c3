package sharedingress

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// answering is a server that handles each connection and closes it then.
func (w *world) answering(backend string, handle func(*net.TCPConn)) {
	w.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = l.Close() })
	w.servers[backend] = l.Addr().String()
	go func() {
		for {
			conn, err := l.AcceptTCP()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
}

// hello is the first message of a client that asks for a name.
func hello(t *testing.T, name string, edit ...func(*tls.Config)) []byte {
	t.Helper()
	c, sent := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}, &bytes.Buffer{}
	for _, e := range edit {
		e(c)
	}
	if err := tls.Client(sending{sent}, c).HandshakeContext(t.Context()); err == nil || sent.Len() == 0 {
		t.Fatalf("%d bytes were sent, %v", sent.Len(), err)
	}
	return sent.Bytes()
}

// sending is a connection that keeps what is written, and on which nothing comes.
type sending struct{ to io.Writer }

func (s sending) Write(p []byte) (int, error)    { return s.to.Write(p) }
func (sending) Read([]byte) (int, error)         { return 0, io.EOF }
func (sending) Close() error                     { return nil }
func (sending) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (sending) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (sending) SetDeadline(time.Time) error      { return nil }
func (sending) SetReadDeadline(time.Time) error  { return nil }
func (sending) SetWriteDeadline(time.Time) error { return nil }

// dial connects from an address of this machine, and sends something at once.
func dial(t *testing.T, address, from string, first []byte) *net.TCPConn {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(first); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

func (p *Proxy) count(result string) float64 {
	return testutil.ToFloat64(p.results.WithLabelValues("name", result))
}

func TestHalfClosed(t *testing.T) {
	const name = "api.c0.example.com"
	start := func(t *testing.T, halfClosed time.Duration, handle func(*net.TCPConn)) (*Proxy, string) {
		w, l := newWorld(t), limits()
		l.HalfClosed = halfClosed
		w.answering("clusters-c0/kube-apiserver", handle)
		p, names, _ := w.start(l)
		p.Use(w.table([]hyperv1.HostedCluster{cluster(0)}, nil))
		return p, names
	}
	t.Run("When the server has hung up it should not hold a client that never does", func(t *testing.T) {
		g := NewWithT(t)
		p, names := start(t, time.Millisecond, func(c *net.TCPConn) { _, _ = c.Read(make([]byte, 16<<10)) })
		conn := dial(t, names, "127.0.0.1", hello(t, name))
		g.Eventually(func() float64 { return p.count(led) }, patience).Should(BeEquivalentTo(1))
		g.Eventually(p.open.Load, patience).Should(BeZero())
		_, _ = conn.Read(make([]byte, 1)) // it is open on this side until here
	})
	t.Run("When the server says no more and reads no more it should not hold a client that goes on to send", func(t *testing.T) {
		g := NewWithT(t)
		end := make(chan struct{})
		t.Cleanup(func() { close(end) })
		p, names := start(t, time.Millisecond, func(c *net.TCPConn) { _ = c.CloseWrite(); <-end })
		_, err := io.Copy(dial(t, names, "127.0.0.1", hello(t, name)), zeros{})
		g.Expect(err).To(MatchError(Or(ContainSubstring("reset"), ContainSubstring("broken pipe"))))
		g.Eventually(p.open.Load, patience).Should(BeZero())
	})
	t.Run("When the client has said all it should not be held for a server that never answers", func(t *testing.T) {
		g := NewWithT(t)
		end := make(chan struct{})
		t.Cleanup(func() { close(end) })
		p, names := start(t, time.Millisecond, func(*net.TCPConn) { <-end })
		g.Expect(dial(t, names, "127.0.0.1", hello(t, name)).CloseWrite()).To(Succeed())
		g.Eventually(func() float64 { return p.count(led) }, patience).Should(BeEquivalentTo(1))
		g.Eventually(p.open.Load, patience).Should(BeZero())
	})
	t.Run("When the client has said all it should still get the answer", func(t *testing.T) {
		g := NewWithT(t)
		_, names := start(t, patience, func(c *net.TCPConn) {
			_, _ = io.Copy(io.Discard, c)
			_, _ = io.WriteString(c, "the answer")
		})
		conn := dial(t, names, "127.0.0.1", hello(t, name))
		g.Expect(conn.CloseWrite()).To(Succeed())
		answer, err := io.ReadAll(conn)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(answer)).To(Equal("the answer"))
	})
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestShareOfCluster(t *testing.T) {
	w := newWorld(t)
	stay := make(chan struct{})
	t.Cleanup(func() { close(stay) })
	for _, server := range []string{"c0/kube-apiserver", "c0/konnectivity-server", "c1/kube-apiserver"} {
		w.answering("clusters-"+server, func(c *net.TCPConn) { _, _ = io.WriteString(c, server); <-stay })
	}
	list := []hyperv1.HostedCluster{cluster(0), cluster(1)}
	l := limits()
	l.PerBackend, l.PerCluster, l.HalfClosed = 2, 3, time.Millisecond
	p, names, clusters := w.start(l)
	p.Use(w.table(list, nil))
	var open []*net.TCPConn
	// reached is what a server says at once; of a connection that is refused it is nothing.
	reached := func(address string, first []byte) string {
		conn, got := dial(t, address, "127.0.0.1", first), make([]byte, 64)
		open = append(open, conn)
		n, _ := conn.Read(got)
		return string(got[:n])
	}
	named := func(name string) string { return reached(names, hello(t, name)) }
	refusals := func(by string) func() float64 {
		return func() float64 { return testutil.ToFloat64(p.results.WithLabelValues(by, full)) }
	}
	g := NewWithT(t)
	g.Expect(named("api.c0.example.com")).To(Equal("c0/kube-apiserver"))
	g.Expect(named("api.c0.example.com")).To(Equal("c0/kube-apiserver"))
	g.Expect(named("tunnel.c0.example.com")).To(Equal("c0/konnectivity-server"))
	t.Run("When a hosted cluster holds its share over several servers it should get no more", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(named("tunnel.c0.example.com")).To(BeEmpty())
		g.Eventually(refusals("name"), patience).Should(BeEquivalentTo(1))
		header := Header(netip.MustParseAddrPort("10.0.0.7:1"), netip.MustParseAddrPort("10.0.0.8:6443"), cluster(0).Spec.ClusterID)
		g.Expect(reached(clusters, append(header, hello(t, "kubernetes.default.svc")...))).To(BeEmpty())
		g.Eventually(refusals("cluster"), patience).Should(BeEquivalentTo(1))
	})
	t.Run("When its servers are not in the table for a while it should count on", func(t *testing.T) {
		g := NewWithT(t)
		p.Use(w.table(list[1:], p.Table()))
		g.Expect(named("tunnel.c0.example.com")).To(BeEmpty(), "nothing has the name")
		p.Use(w.table(list, p.Table()))
		g.Expect(named("tunnel.c0.example.com")).To(BeEmpty())
		g.Eventually(refusals("name"), patience).Should(BeEquivalentTo(2))
	})
	t.Run("When another hosted cluster is asked for it should get through", func(t *testing.T) {
		NewWithT(t).Expect(named("api.c1.example.com")).To(Equal("c1/kube-apiserver"))
	})
	t.Run("When its connections have ended it should get through again, and nothing should be kept of it once it is gone", func(t *testing.T) {
		g := NewWithT(t)
		for _, conn := range open {
			g.Expect(conn.Close()).To(Succeed())
		}
		g.Eventually(p.open.Load, patience).Should(BeZero())
		g.Expect(named("tunnel.c0.example.com")).To(Equal("c0/konnectivity-server"))
		g.Expect(open[len(open)-1].Close()).To(Succeed())
		g.Eventually(func() int { return len(w.table(nil, p.Table()).counts) }, patience).Should(BeZero())
	})
}

func TestHelloIsBounded(t *testing.T) {
	protocols := func(n int) func(*tls.Config) { // each takes 201 bytes
		return func(c *tls.Config) {
			for i := range n {
				c.NextProtos = append(c.NextProtos, fmt.Sprintf("%0200d", i))
			}
		}
	}
	t.Run("When a client's first message fills a record it should be read", func(t *testing.T) {
		g := NewWithT(t)
		sent := hello(t, "api.c0.example.com", protocols(72))
		g.Expect(len(sent)).To(BeNumerically("~", 16<<10, 1<<10))
		name, read, err := serverName(bytes.NewReader(sent))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(name).To(Equal("api.c0.example.com"))
		g.Expect(read).To(Equal(sent))
	})
	t.Run("When a client's first message needs more than one record it should not be kept", func(t *testing.T) {
		g := NewWithT(t)
		r := bytes.NewReader(append(hello(t, "api.c0.example.com", protocols(200)), strings.Repeat("x", 1<<20)...))
		_, _, err := serverName(r)
		g.Expect(err).To(MatchError(ContainSubstring("more than 16389 bytes")))
		g.Expect(r.Size() - int64(r.Len())).To(BeNumerically("<=", 16<<10+5))
	})
}

func TestBeginningsAreShared(t *testing.T) {
	w := newWorld(t)
	w.answering("clusters-c0/kube-apiserver", func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 16<<10))
		_, _ = io.WriteString(c, "the answer")
	})
	l := limits() // in which a client has long to begin
	l.Connections, l.Beginning = 8, 4
	p, names, _ := w.start(l)
	p.Use(w.table([]hyperv1.HostedCluster{cluster(0)}, nil))
	var flood []*net.TCPConn
	for range l.Connections {
		flood = append(flood, dial(t, names, "127.0.0.1", nil))
	}
	t.Run("When one address opens many connections and says nothing its oldest should be closed and counted", func(t *testing.T) {
		g := NewWithT(t)
		g.Eventually(p.open.Load, patience).Should(BeEquivalentTo(4))
		for _, conn := range flood[:4] {
			_, err := conn.Read(make([]byte, 1))
			g.Expect(err).To(MatchError(io.EOF))
		}
		g.Eventually(func() float64 { return p.count(full) }, patience).Should(BeEquivalentTo(4))
		g.Expect(p.count(unreadable)).To(BeZero())
	})
	t.Run("When another address comes then it should get through", func(t *testing.T) {
		g := NewWithT(t)
		answer, err := io.ReadAll(dial(t, names, "127.0.0.2", hello(t, "api.c0.example.com")))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(answer)).To(Equal("the answer"))
	})
}

func TestStop(t *testing.T) {
	w := newWorld(t)
	w.serve("clusters-c0/kube-apiserver", "api.c0.example.com")
	table := w.table([]hyperv1.HostedCluster{cluster(0)}, nil)
	begin := func(t *testing.T, l Limits, listener net.Listener) (stop context.CancelFunc, done chan error) {
		p := NewProxy(l)
		p.Use(table)
		ctx, stop := context.WithCancel(t.Context())
		done = make(chan error, 1)
		go func() { done <- p.Serve(ctx, listener, false) }()
		return stop, done
	}
	listen := func(t *testing.T) net.Listener {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return listener
	}
	t.Run("When it is told to stop it should take new connections until nobody sends more, and none after that", func(t *testing.T) {
		g, l, listener := NewWithT(t), limits(), listen(t)
		l.LameDuck = 5 * time.Second
		stop, done := begin(t, l, listener)
		address := listener.Addr().String()
		_, err := w.get("api.c0.example.com", "/", to(address))
		g.Expect(err).NotTo(HaveOccurred())
		stop()
		begun := time.Now()
		for range 3 {
			_, err := w.get("api.c0.example.com", "/", to(address))
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Eventually(done, patience).Should(Receive(BeNil()))
		g.Expect(time.Since(begun)).To(BeNumerically(">=", l.LameDuck))
		_, err = net.Dial("tcp", address)
		g.Expect(err).To(HaveOccurred())
	})
	t.Run("When accepting fails it should not wait", func(t *testing.T) {
		g, l, listener := NewWithT(t), limits(), listen(t)
		l.LameDuck = time.Hour
		stop, done := begin(t, l, listener)
		stop()
		g.Expect(listener.Close()).To(Succeed())
		g.Eventually(done, patience).Should(Receive(HaveOccurred()))
	})
	t.Run("When connections may go on for long the program should wait for as long, and for a while longer", func(t *testing.T) {
		g, f := NewWithT(t), flags{connections: 1, perBackend: 1, begin: 1, dial: 1, drain: 5 * time.Minute}
		l, err := f.limits()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(l.Stop()).To(BeNumerically(">", 5*time.Minute+DefaultLimits().LameDuck))
	})
	t.Run("When it is told to stop it should not be ready", func(t *testing.T) {
		g, r := NewWithT(t), &Reconciler{}
		ctx, stop := context.WithCancel(t.Context())
		check := ready(ctx, r)
		g.Expect(check(nil)).NotTo(Succeed())
		r.synced.Store(true)
		g.Expect(check(nil)).To(Succeed())
		stop()
		g.Expect(check(nil)).To(MatchError(ContainSubstring("stop")))
	})
}

func TestLimitsOfFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		flags                           flags
		perBackend, perCluster, unknown int64
	}{
		"When no limit is given it should take four hosted clusters to use all connections": {
			flags{connections: 20_000, perBackend: 5_000}, 5_000, 6_000, 2_000},
		"When fewer connections are given shares should become smaller with them": {
			flags{connections: 1_000, perBackend: 5_000}, 250, 300, 100},
		"When more connections are given clients that say nothing should not take more memory": {
			flags{connections: 100_000, perBackend: 5_000}, 5_000, 30_000, 2_000},
		"When more are given for one server it should get them": {
			flags{connections: 1_000, perBackend: 800, perBackendGiven: true}, 800, 800, 100},
		"When one connection is given it should be possible": {
			flags{connections: 1, perBackend: 5_000}, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tc.flags.begin, tc.flags.dial = time.Second, time.Second
			l, err := tc.flags.limits()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect([]int64{l.PerBackend, l.PerCluster, int64(l.Beginning)}).To(Equal([]int64{tc.perBackend, tc.perCluster, tc.unknown}))
			g.Expect(l.HalfClosed).To(Equal(time.Minute))
		})
	}
}
