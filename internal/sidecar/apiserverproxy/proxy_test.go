package apiserverproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/vishvananda/netlink"
)

var quiet = slog.New(slog.DiscardHandler)

// backend answers each connection with its name and then, once the client has said all, with what that was.
func backend(t *testing.T, address, name string) netip.AddrPort {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, name+":")
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

// start serves a target and returns the address, and what ends it and waits.
func start(t *testing.T, tgt *target, at netip.AddrPort, drain time.Duration) (netip.AddrPort, func()) {
	t.Helper()
	l, err := listen(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- newProxy(tgt, quiet).serve(ctx, l, drain) }()
	stop := func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(2 * time.Minute):
			t.Error("it does not end")
		}
	}
	return netip.MustParseAddrPort(l.Addr().String()), stop
}

func dial(t *testing.T, at netip.AddrPort) *net.TCPConn {
	t.Helper()
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// say sends everything, closes that side, and returns what comes back.
func say(t *testing.T, at netip.AddrPort, text string) (string, error) {
	t.Helper()
	c := dial(t, at)
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	_ = c.CloseWrite()
	answer, err := io.ReadAll(c)
	return string(answer), err
}

var (
	loopback   = netip.MustParseAddrPort("127.0.0.1:0")
	advertised = netip.MustParseAddrPort("172.20.0.1:6443")
)

func named(t *testing.T, port uint16, lookup func() ([]netip.Addr, error)) *target {
	t.Helper()
	tgt, err := newTarget(net.JoinHostPort("api.example.com", strconv.Itoa(int(port))), advertised)
	if err != nil {
		t.Fatal(err)
	}
	tgt.lookup = func(context.Context, string) ([]netip.Addr, error) { return lookup() }
	return tgt
}

func addresses(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func TestProxy(t *testing.T) {
	t.Run("When one side has said all the other should still be heard", func(t *testing.T) {
		g := NewWithT(t)
		api := backend(t, "127.0.0.1:0", "a")
		tgt, err := newTarget(api.String(), advertised)
		g.Expect(err).NotTo(HaveOccurred())
		at, stop := start(t, tgt, loopback, time.Second)
		defer stop()
		big := string(bytes.Repeat([]byte("0123456789abcdef"), 1<<16))
		answer, err := say(t, at, big)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer == "a:"+big).To(BeTrue(), "%d bytes came back of %d", len(answer), len(big)+2)
	})
	t.Run("When the API can't be reached the client should see an error and not an empty answer", func(t *testing.T) {
		g := NewWithT(t)
		tgt := named(t, 1, func() ([]netip.Addr, error) { return addresses("127.0.0.1"), nil })
		at, stop := start(t, tgt, loopback, time.Second)
		defer stop()
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at.String())
		if err == nil {
			defer c.Close()
			_, err = io.ReadAll(c)
		}
		g.Expect(err).To(MatchError(unix.ECONNRESET))
	})
	t.Run("When it is told to end open connections should go on and a successor should take new ones", func(t *testing.T) {
		g := NewWithT(t)
		a, b := backend(t, "127.0.0.1:0", "a"), backend(t, "127.0.0.1:0", "b")
		first, _ := newTarget(a.String(), advertised)
		second, _ := newTarget(b.String(), advertised)
		at, stopFirst := start(t, first, loopback, time.Minute)
		old := dial(t, at)
		_, err := io.ReadFull(old, make([]byte, 2))
		g.Expect(err).NotTo(HaveOccurred())

		_, stopSecond := start(t, second, at, time.Second)
		defer stopSecond()
		ended := make(chan struct{})
		go func() { stopFirst(); close(ended) }()
		after := 0
		for begin := time.Now(); time.Since(begin) < 2*handover || after <= 20; {
			answer, err := say(t, at, "x")
			g.Expect(err).NotTo(HaveOccurred(), "nobody who connects may see the change")
			if after++; answer == "a:x" {
				after = 0
			}
			g.Expect(time.Since(begin)).To(BeNumerically("<", time.Minute), "the successor takes them")
		}
		_, err = io.WriteString(old, "still here")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(old.CloseWrite()).To(Succeed())
		g.Expect(io.ReadAll(old)).To(BeEquivalentTo("still here"))
		g.Eventually(ended, 30*time.Second).Should(BeClosed(), "nothing is open any more")
	})
	t.Run("When processes follow one another nobody who connects should see it", func(t *testing.T) {
		g := NewWithT(t)
		api := backend(t, "127.0.0.1:0", "a")
		tgt, _ := newTarget(api.String(), advertised)
		at, stop := start(t, tgt, loopback, time.Second)
		var asked, stopped atomic.Int64
		var failure atomic.Value
		done := make(chan struct{})
		go func() {
			defer close(done)
			for stopped.Load() == 0 {
				if _, err := say(t, at, "x"); err != nil {
					failure.Store(err)
				}
				asked.Add(1)
			}
		}()
		more := func() {
			before := asked.Load()
			g.Eventually(asked.Load).Should(BeNumerically(">=", before+10))
		}
		for range 4 {
			_, next := start(t, tgt, at, time.Second)
			more()
			stop()
			more()
			stop = next
		}
		stopped.Store(1)
		<-done
		stop()
		g.Expect(failure.Load()).To(BeNil())
	})
	t.Run("When it stood still until its time was over who waits should be taken first", func(t *testing.T) {
		g := NewWithT(t)
		api := backend(t, "127.0.0.1:0", "a")
		tgt, _ := newTarget(api.String(), advertised)
		l, err := listen(t.Context(), loopback)
		g.Expect(err).NotTo(HaveOccurred())
		early := dial(t, l.Addr().(*net.TCPAddr).AddrPort()) // the kernel has accepted it
		g.Eventually(func() bool { return waits(l) }).Should(BeTrue())
		g.Expect(l.SetDeadline(time.Now())).To(Succeed())
		ended := make(chan error, 1)
		go func() { ended <- newProxy(tgt, slog.New(slog.DiscardHandler)).serve(t.Context(), l, time.Minute) }()
		_, err = io.WriteString(early, "here")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(early.CloseWrite()).To(Succeed())
		g.Expect(io.ReadAll(early)).To(BeEquivalentTo("a:here"))
		g.Eventually(ended).Should(Receive(BeNil()), "nobody waits any more")
	})
	t.Run("When open connections don't end it should end all the same", func(t *testing.T) {
		api := backend(t, "127.0.0.1:0", "a")
		tgt, _ := newTarget(api.String(), advertised)
		at, stop := start(t, tgt, loopback, 100*time.Millisecond)
		dial(t, at)
		stop()
	})
}

func TestTarget(t *testing.T) {
	t.Run("When the name gets another address new connections should go there", func(t *testing.T) {
		g := NewWithT(t)
		a := backend(t, "127.0.0.1:0", "a")
		backend(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), a.Port()).String(), "b")
		var moved, later atomic.Bool
		tgt := named(t, a.Port(), func() ([]netip.Addr, error) {
			if moved.Load() {
				return addresses("127.0.0.2"), nil
			}
			return addresses("127.0.0.1"), nil
		})
		begin := time.Now()
		tgt.now = func() time.Time {
			if later.Load() {
				return begin.Add(fresh)
			}
			return begin
		}
		at, stop := start(t, tgt, loopback, time.Second)
		defer stop()
		g.Expect(say(t, at, "")).To(Equal("a:"))
		moved.Store(true)
		later.Store(true)
		g.Expect(say(t, at, "")).To(Equal("b:"))
	})
	t.Run("When names can't be looked up it should use the addresses of before", func(t *testing.T) {
		g := NewWithT(t)
		tgt := named(t, 6443, func() ([]netip.Addr, error) { return addresses("192.0.2.7"), nil })
		now := time.Now()
		tgt.now = func() time.Time { return now }
		g.Expect(tgt.addresses(t.Context())).To(Equal(addresses("192.0.2.7")))
		tgt.lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no answer") }
		now = now.Add(time.Hour)
		g.Expect(tgt.addresses(t.Context())).To(Equal(addresses("192.0.2.7")))
	})
	t.Run("When one address doesn't answer it should take the next and begin with that from then on", func(t *testing.T) {
		g := NewWithT(t)
		api := backend(t, "127.0.0.1:0", "a")
		tgt := named(t, api.Port(), func() ([]netip.Addr, error) { return addresses("127.0.0.3", "::1", "127.0.0.1"), nil })
		c, err := tgt.connect(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		_ = c.Close()
		g.Expect(tgt.addresses(t.Context())).To(Equal(addresses("127.0.0.1", "::1", "127.0.0.3")))
	})
	t.Run("When the name leads back to this node it should say so instead of going round", func(t *testing.T) {
		g := NewWithT(t)
		tgt := named(t, 6443, func() ([]netip.Addr, error) { return addresses("::ffff:172.20.0.1"), nil })
		_, err := tgt.connect(t.Context())
		g.Expect(err).To(MatchError(ContainSubstring("api.example.com is the advertised address 172.20.0.1 itself")))
	})
	t.Run("When the target is no host and port it should be refused", func(t *testing.T) {
		for _, bad := range []string{"", "api.example.com", "api.example.com:0", "api.example.com:https", ":6443", "a:b:1"} {
			_, err := newTarget(bad, advertised)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is not HOST:PORT")), bad)
		}
	})
	t.Run("When many connect at once it should ask for the name once", func(t *testing.T) {
		g := NewWithT(t)
		asked := 0
		tgt := named(t, 6443, func() ([]netip.Addr, error) { asked++; return addresses("192.0.2.7"), nil })
		for range 100 {
			_, err := tgt.addresses(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(asked).To(Equal(1))
	})
}

func TestHealth(t *testing.T) {
	t.Run("When the API is away it should be healthy and not ready", func(t *testing.T) {
		g := NewWithT(t)
		get := func(h http.Handler, path string) int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w.Code
		}
		fine, broken := func() error { return nil }, func() error { return errors.New("broken") }
		g.Expect(get(checks(fine, broken), "/healthz")).To(Equal(http.StatusOK))
		g.Expect(get(checks(fine, broken), "/readyz")).To(Equal(http.StatusServiceUnavailable))
		g.Expect(get(checks(fine, fine), "/readyz")).To(Equal(http.StatusOK))
		g.Expect(get(checks(broken, fine), "/healthz")).To(Equal(http.StatusServiceUnavailable))
		g.Expect(get(checks(broken, fine), "/readyz")).To(Equal(http.StatusServiceUnavailable))
	})
}

// inOwnNetwork runs f in a network namespace of its own, whose thread ends with it.
func inOwnNetwork(t *testing.T, f func(g Gomega)) {
	t.Helper()
	failed := make(chan string, 1)
	go func() {
		defer close(failed)
		runtime.LockOSThread() // and never unlocked: the thread isn't good for others any more
		g := NewGomega(func(message string, _ ...int) { failed <- message; runtime.Goexit() })
		g.Expect(unix.Unshare(unix.CLONE_NEWNET)).To(Succeed(), "this test needs root")
		f(g)
	}()
	if message, bad := <-failed; bad {
		t.Fatal(message)
	}
}

func TestOwn(t *testing.T) {
	for name, text := range map[string]string{
		"When the address is IPv4 it should be added once and for this machine alone": "172.20.0.1",
		"When the address is IPv6 it should be added once and for this machine alone": "fd00::1",
	} {
		t.Run(name, func(t *testing.T) {
			address := netip.MustParseAddr(text)
			inOwnNetwork(t, func(g Gomega) {
				lo, err := netlink.LinkByName("lo")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(netlink.LinkSetUp(lo)).To(Succeed())
				l, err := listen(context.Background(), netip.AddrPortFrom(address, 0))
				g.Expect(err).NotTo(HaveOccurred(), "it listens before the address is there")
				keeper := &owner{link: "lo", address: address, log: quiet}
				for range 2 {
					g.Expect(keeper.look()).To(Succeed())
				}
				found := func() (n int) {
					list, err := netlink.AddrList(lo, netlink.FAMILY_ALL)
					g.Expect(err).NotTo(HaveOccurred())
					for _, a := range list {
						if a.IP.String() == text {
							ones, bits := a.Mask.Size()
							g.Expect(ones).To(Equal(bits))
							n++
						}
					}
					return n
				}
				g.Expect(found()).To(Equal(1))
				// The kernel makes an IPv6 address its own a moment after it was added.
				var c net.Conn
				for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
					if c, err = net.DialTimeout("tcp", l.Addr().String(), 200*time.Millisecond); err == nil {
						break
					}
				}
				g.Expect(err).NotTo(HaveOccurred())
				_ = c.Close()
			})
		})
	}
	t.Run("When the link isn't there it should not be healthy", func(t *testing.T) {
		inOwnNetwork(t, func(g Gomega) {
			keeper := &owner{link: "eth9", address: netip.MustParseAddr("172.20.0.1"), log: quiet}
			g.Expect(keeper.look()).To(MatchError(ContainSubstring("looking for link eth9")))
			g.Expect(keeper.last()).To(HaveOccurred())
		})
	})
}
