package process

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestFence(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	var got []string
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Method+" "+r.URL.Path)
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	clk := clocktesting.NewFakePassiveClock(time.Now())
	fence := NewFence("hypershift", "operator", clk)
	cfg := &rest.Config{Host: server.URL}
	attached := func() *http.Client {
		to, err := fence.Attach(cfg)
		g.Expect(err).NotTo(HaveOccurred())
		c, err := rest.HTTPClientFor(to)
		g.Expect(err).NotTo(HaveOccurred())
		return c
	}
	one, other := attached(), attached() // such as that of a manager
	g.Expect(cfg.WrapTransport).To(BeNil(), "the given configuration is not changed")

	const object, lease = "/api/v1/namespaces/a/configmaps/b", "/apis/coordination.k8s.io/v1/namespaces/hypershift/leases/operator"
	send := func(c *http.Client, method, path string) error {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader("{}"))
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Body.Close()
	}
	clk.SetTime(clk.Now().Add(time.Hour))
	g.Expect(send(other, http.MethodPatch, object)).To(Succeed(), "When it never was the leader it should not be fenced: what runs without a lease writes, too")

	g.Expect(send(one, http.MethodPut, lease)).To(Succeed())
	clk.SetTime(clk.Now().Add(LeaseDuration - time.Second))
	g.Expect(send(other, http.MethodPatch, object)).To(Succeed(), "When nobody else can have the lease it should go on")

	// The process stands still, and another takes the lease up.
	clk.SetTime(clk.Now().Add(10 * time.Minute))
	for _, method := range []string{http.MethodPatch, http.MethodPut, http.MethodPost, http.MethodDelete} {
		g.Expect(send(other, method, object)).To(MatchError(ContainSubstring("another process may be the leader")), method)
	}
	g.Expect(send(other, http.MethodGet, object)).To(Succeed(), "When it reads it should not be fenced")
	mu.Lock()
	seen := len(got)
	status = http.StatusConflict
	mu.Unlock()
	g.Expect(seen).To(Equal(4), "%q", got)
	g.Expect(send(one, http.MethodPut, lease)).To(Succeed())
	g.Expect(send(other, http.MethodPatch, object)).To(MatchError(ContainSubstring("another process")), "When the renewal is refused it should stay fenced")
	mu.Lock()
	status = http.StatusOK
	mu.Unlock()
	g.Expect(send(one, http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/other/leases/operator")).To(HaveOccurred(), "another lease is an object like any other")
	g.Expect(send(one, http.MethodPut, lease)).To(Succeed())
	g.Expect(send(other, http.MethodPatch, object)).To(Succeed(), "When the lease was still there it should go on")
}

// A request waits between the fence and the network: for a connection, for its turn on one.
func TestFenceAtConnection(t *testing.T) {
	t.Run("When the process stands still while a write waits for its connection the write should not be sent", func(t *testing.T) {
		g := NewWithT(t)
		got := make(chan string, 10)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Method }))
		t.Cleanup(server.Close)
		clk := clocktesting.NewFakePassiveClock(time.Now())
		fence := NewFence("hypershift", "operator", clk)
		dial := (&net.Dialer{}).DialContext
		cfg := &rest.Config{Host: server.URL, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			clk.SetTime(clk.Now().Add(LeaseDuration))
			return conn, err
		}}
		to, err := fence.Attach(cfg)
		g.Expect(err).NotTo(HaveOccurred())
		c, err := rest.HTTPClientFor(to)
		g.Expect(err).NotTo(HaveOccurred())
		fence.note(clk.Now())
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := c.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		g.Expect(err).To(MatchError(ContainSubstring("another process may be the leader")))
		g.Expect(got).To(BeEmpty())

		resp, err = c.Get(server.URL)
		g.Expect(err).NotTo(HaveOccurred(), "reads go on")
		g.Expect(resp.Body.Close()).To(Succeed())
	})
}
