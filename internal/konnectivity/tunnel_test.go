package konnectivity

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestTunnel(t *testing.T) {
	t.Run("When an agent is connected it should carry bytes both ways and tell the target the end", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server()
		w.agent(s.back)
		conn := w.mustDial(s.front, echo(t))
		sent := make([]byte, 4<<20)
		_, _ = rand.Read(sent)
		go func() {
			_, _ = conn.Write(sent)
			_ = conn.(readFirst).Conn.(interface{ CloseWrite() error }).CloseWrite()
		}()
		got, err := io.ReadAll(conn)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(sha256.Sum256(got)).To(Equal(sha256.Sum256(sent)))
	})
	t.Run("When tunnels run side by side each should get its own bytes", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server()
		w.agent(s.back)
		w.agent(s.back)
		where := echo(t)
		_ = w.mustDial(s.front, where)
		var all sync.WaitGroup
		errs := make([]error, 40)
		for i := range errs {
			all.Go(func() {
				conn, resp, err := w.dial(s.front, where)
				if err != nil || resp.StatusCode != http.StatusOK {
					errs[i] = errors.Join(fmt.Errorf("tunnel %d: the answer is %+v", i, resp), err)
					return
				}
				defer conn.Close()
				want := bytes.Repeat([]byte{byte(i)}, 100_000)
				go func() { _, _ = conn.Write(want) }()
				got := make([]byte, len(want))
				if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
					errs[i] = errors.Join(fmt.Errorf("tunnel %d: bytes are missing or of another", i), err)
				}
			})
		}
		all.Wait()
		for _, err := range errs {
			g.Expect(err).NotTo(HaveOccurred())
		}
	})
	t.Run("When a reader is slow it should stop its own sender and no other tunnel", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server()
		w.agent(s.back)
		sent := make(chan int, 1)
		flood := serveTCP(t, func(c net.Conn) {
			total, chunk := 0, make([]byte, 64<<10)
			_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
			for {
				n, err := c.Write(chunk)
				if total += n; err != nil {
					sent <- total
					return
				}
			}
		})
		_ = w.mustDial(s.front, flood) // and never read
		other := w.mustDial(s.front, echo(t))
		_, _ = other.Write([]byte("still here"))
		got := make([]byte, 10)
		_, err := io.ReadFull(other, got)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(Equal("still here"))
		// Buffers of the kernel on three connections and one window.
		g.Eventually(sent).Should(Receive(BeNumerically("<", 32<<20)))
	})
	t.Run("When tunnels end nothing should be left of them", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server()
		w.agent(s.back)
		where := echo(t)
		_ = w.mustDial(s.front, where).Close()
		time.Sleep(50 * time.Millisecond) // lets what ends end, before it is counted
		before := runtime.NumGoroutine()
		for range 50 {
			_ = w.mustDial(s.front, where).Close()
		}
		g.Eventually(runtime.NumGoroutine).Should(BeNumerically("<=", before+5))
		g.Eventually(func() int { return len(s.tunnels) }).Should(BeZero())
	})
	t.Run("When the target closes the client should see the end", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server()
		w.agent(s.back)
		conn := w.mustDial(s.front, serveTCP(t, func(c net.Conn) { _, _ = c.Write([]byte("bye")) }))
		got, err := io.ReadAll(conn)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(Equal("bye"))
	})
}

// TestHalfClosed is about targets that don't end when their client has.
func TestHalfClosed(t *testing.T) {
	quick := func(o *ServerOptions) { o.HalfClosed = 50 * time.Millisecond }
	t.Run("When the client has closed it should not wait for a target that never does", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server(quick)
		w.agent(s.back)
		speak, closed := make(chan struct{}), make(chan struct{})
		conn := w.mustDial(s.front, serveTCP(t, func(c net.Conn) {
			defer close(closed)
			<-speak
			for err := error(nil); err == nil; {
				_, err = c.Write([]byte{0}) // fails once the agent has closed its end
			}
		}))
		_ = conn.Close()
		g.Eventually(func() int { return len(s.tunnels) }).Should(BeZero())
		close(speak)
		g.Eventually(closed).Should(BeClosed())
	})
	t.Run("When the client has said all it should carry an answer that takes its time", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server(func(o *ServerOptions) { o.HalfClosed = time.Second })
		w.agent(s.back)
		const parts = 50
		conn := w.mustDial(s.front, serveTCP(t, func(c net.Conn) {
			_, _ = io.Copy(io.Discard, c)
			for range parts {
				_, _ = c.Write([]byte("part "))
				time.Sleep(50 * time.Millisecond) // all parts together take more than twice the bound
			}
		}))
		g.Expect(conn.(readFirst).Conn.(interface{ CloseWrite() error }).CloseWrite()).To(Succeed())
		got, err := io.ReadAll(conn)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(Equal(strings.Repeat("part ", parts)))
	})
	t.Run("When both sides are silent for long it should stay", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server(func(o *ServerOptions) { o.HalfClosed = time.Millisecond })
		w.agent(s.back)
		conn := w.mustDial(s.front, echo(t))
		g.Consistently(func() int { return len(s.tunnels) }).WithTimeout(200 * time.Millisecond).Should(Equal(1))
		_, err := conn.Write([]byte("x"))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = io.ReadFull(conn, make([]byte, 1))
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When the client has closed while the target takes nothing it should not wait for it", func(t *testing.T) {
		g := NewWithT(t)
		l := listen(t)
		defer l.Close()
		client, err := net.Dial("tcp", l.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		ours, err := l.Accept()
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		_, write := io.Pipe() // nobody reads from it
		_, err = client.Write([]byte("a request, of which the target reads nothing"))
		g.Expect(err).NotTo(HaveOccurred())
		done := make(chan struct{})
		go func() {
			defer close(done)
			join(ours, bufio.NewReader(ours), &tunnel{read: untilDone{ctx}, write: write, cancel: cancel}, 20*time.Millisecond)
		}()
		g.Consistently(done).WithTimeout(200*time.Millisecond).ShouldNot(BeClosed(), "the client is there")
		_ = client.Close()
		g.Eventually(done).Should(BeClosed())
	})
}

// untilDone says nothing until a context ends.
type untilDone struct{ context.Context }

func (u untilDone) Read([]byte) (int, error) { <-u.Done(); return 0, u.Err() }
func (u untilDone) Close() error             { return nil }

func TestRefusals(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	s := w.server(func(o *ServerOptions) { o.MaxTunnels = 1 })
	expectNobody(s)
	answer := func(target string, as ...Files) (int, string) {
		_, resp, err := w.dial(s.front, target, as...)
		if err != nil {
			return 0, err.Error()
		}
		return resp.StatusCode, resp.Body
	}
	status, body := answer("10.0.0.1:443")
	g.Expect(status).To(Equal(http.StatusBadGateway), "When no agent is connected it should say so")
	g.Expect(body).To(ContainSubstring("no agent is connected"))

	w.agent(s.back, func(o *AgentOptions) { o.Allow = nil })
	g.Eventually(s.agents.count).Should(Equal(1))
	for name, tc := range map[string]struct {
		target string
		status int
		text   string
	}{
		"When the target is loopback the agent should refuse":    {"127.0.0.1:10250", http.StatusBadGateway, "not forwarded"},
		"When it is IPv6 loopback in disguise it should refuse":  {"[::ffff:127.0.0.1]:10250", http.StatusBadGateway, "not forwarded"},
		"When the target is a metadata service it should refuse": {"169.254.169.254:80", http.StatusBadGateway, "not forwarded"},
		"When a name means loopback it should refuse":            {"localhost:10250", http.StatusBadGateway, "not forwarded"},
		"When the port is 0 it should refuse":                    {"10.0.0.1:0", http.StatusBadRequest, "port"},
		"When the target is garbage it should refuse":            {"a_b:1", http.StatusBadRequest, "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status, body := answer(tc.target)
			g.Expect(status).To(Equal(tc.status), body)
			g.Expect(body).To(ContainSubstring(tc.text))
		})
	}
	t.Run("When an agent's certificate asks for a tunnel it should be turned away", func(t *testing.T) {
		status, body := answer("10.0.0.1:443", w.ca.issue(agentName, x509.ExtKeyUsageClientAuth))
		NewWithT(t).Expect(status).To(BeZero(), body)
	})
	t.Run("When the certificate is of another authority it should be turned away", func(t *testing.T) {
		other := newAuthority(t).issue(clientName, x509.ExtKeyUsageClientAuth)
		other.CA = w.client.CA
		status, body := answer("10.0.0.1:443", other)
		NewWithT(t).Expect(status).To(BeZero(), body)
	})
	t.Run("When a server's certificate is used by a client it should be turned away", func(t *testing.T) {
		status, body := answer("10.0.0.1:443", w.ca.issue(clientName, x509.ExtKeyUsageServerAuth))
		NewWithT(t).Expect(status).To(BeZero(), body)
	})
	t.Run("When kube-apiserver's certificate joins as an agent it should be turned away", func(t *testing.T) {
		before := s.agents.count()
		_, stop := w.agent(s.back, func(o *AgentOptions) { o.Files = w.client })
		defer stop()
		NewWithT(t).Consistently(s.agents.count).WithTimeout(300 * time.Millisecond).Should(Equal(before))
	})
}

func TestLimits(t *testing.T) {
	t.Run("When all tunnels are taken the next should be refused and a free one given again", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server(func(o *ServerOptions) { o.MaxTunnels = 1 })
		w.agent(s.back)
		where := echo(t)
		first := w.mustDial(s.front, where)
		_, resp, err := w.dial(s.front, where)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resp.StatusCode).To(Equal(http.StatusServiceUnavailable))
		_ = first.Close()
		_ = w.mustDial(s.front, where)
	})
	t.Run("When there are too many agents the next should wait outside", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server(func(o *ServerOptions) { o.MaxAgents = 1 })
		w.agent(s.back)
		g.Eventually(s.agents.count).Should(Equal(1))
		second, _ := w.agent(s.back)
		g.Consistently(func() int { have, _ := second.Connected(); return have }).WithTimeout(300 * time.Millisecond).Should(BeZero())
		g.Expect(s.agents.count()).To(Equal(1))
	})
}

func TestWaitingRequests(t *testing.T) {
	t.Run("When more requests wait for an agent than clients may be unknown each should be answered", func(t *testing.T) {
		const requests, patience = maxHandshakes + 20, 5 * time.Minute
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server(func(o *ServerOptions) { o.MaxTunnels = requests })
		beForgiving(s, patience)
		statuses := make(chan int, requests)
		for i := range requests {
			go func() {
				_, resp, _ := w.dial(s.front, "10.0.0.1:443")
				statuses <- resp.StatusCode // 0: it was closed
			}()
			g.Eventually(func() int { return len(s.tunnels) }).Should(Equal(i+1), "it waits, and so do those before it")
		}
		_, resp, err := w.dial(s.front, "10.0.0.1:443")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resp.StatusCode).To(Equal(http.StatusServiceUnavailable), "those who wait are bounded all the same")
		expectNobody(s)
		for range requests {
			g.Eventually(statuses).Should(Receive(Equal(http.StatusBadGateway)))
		}
	})
	t.Run("When a client goes on sending after its request was refused the server should not keep it", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server()
		expectNobody(s)
		pair, pool, err := read(w.client)
		g.Expect(err).NotTo(HaveOccurred())
		conn, err := tls.Dial("tcp", s.front, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{*pair}, ServerName: "127.0.0.1"})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprint(conn, "CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conn.SetReadDeadline(time.Now().Add(handshakeTimeout + 30*time.Second))).To(Succeed())
		_, err = io.ReadAll(conn)
		g.Expect(err).NotTo(HaveOccurred(), "it should be closed")
	})
}

// beForgiving makes a server wait for an agent for as long as a slow machine may need.
func beForgiving(s *running, patience time.Duration) {
	s.agents.mu.Lock()
	defer s.agents.mu.Unlock()
	s.agents.wait, s.agents.hope, s.agents.known = patience, time.Now().Add(patience), true
}

// expectNobody makes a server refuse at once when it has no agent.
func expectNobody(s *running) {
	s.agents.mu.Lock()
	defer s.agents.mu.Unlock()
	s.agents.hope, s.agents.known = time.Time{}, true
}

func TestWaitForAgent(t *testing.T) {
	ask := func(w *world, s *running, target string) <-chan int {
		status := make(chan int, 1)
		go func() {
			conn, resp, err := w.dial(s.front, target)
			if err != nil {
				status <- 0
				return
			}
			_ = conn.Close()
			status <- resp.StatusCode
		}()
		return status
	}
	const patience = time.Minute
	t.Run("When a server has just started a request should wait for the first agent", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server()
		beForgiving(s, patience)
		status := ask(w, s, echo(t))
		g.Eventually(func() int { return len(s.tunnels) }).WithTimeout(patience).Should(Equal(1), "the request has come")
		w.agent(s.back)
		g.Eventually(status).WithTimeout(patience).Should(Receive(Equal(http.StatusOK)))
	})
	t.Run("When the only agent is replaced a request should wait for the next", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server()
		beForgiving(s, patience)
		_, leave := w.agent(s.back)
		g.Eventually(s.agents.count).WithTimeout(patience).Should(Equal(1))
		expectNobody(s) // that it leaves is what gives hope
		leave()
		g.Eventually(s.agents.count).WithTimeout(patience).Should(BeZero())
		g.Expect(s.agents.hopeful()).To(BeTemporally(">", time.Now().Add(-patience)))
		beForgiving(s, patience)
		status := ask(w, s, echo(t))
		g.Eventually(func() int { return len(s.tunnels) }).WithTimeout(patience).Should(Equal(1))
		w.agent(s.back)
		g.Eventually(status).WithTimeout(patience).Should(Receive(Equal(http.StatusOK)))
	})
	t.Run("When the client gives up it should not be waited for", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.server()
		beForgiving(s, patience)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.agents.dial(ctx, target{host: "10.0.0.1", port: 443})
		g.Expect(err).To(MatchError(context.Canceled))
	})
}
