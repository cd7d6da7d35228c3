package tunnelproxy

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"

	"hcp.internal/platform/internal/sidecar/kubeapi"
)

// fakeNet stands for networks: each dial function knows hosts by name, and remembers what was asked.
type fakeNet struct {
	mu    sync.Mutex
	asked []string
	hosts map[string]string // host:port → real address
}

func (n *fakeNet) dial(by string) DialFunc {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		n.mu.Lock()
		n.asked = append(n.asked, by+" "+address)
		real, ok := n.hosts[address]
		n.mu.Unlock()
		if !ok {
			return nil, fmt.Errorf("%s is not there", address)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", real)
	}
}

func (n *fakeNet) log() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.asked...)
}

// hello is a server that says who it is.
func hello(t *testing.T, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// hostedAPI knows one Service.
func hostedAPI(t *testing.T) func() (*kubeapi.Client, error) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/shop/services/web" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"spec":{"clusterIP":"fd02::7","clusterIPs":["fd02::7","172.31.0.7"]}}`)
	}))
	t.Cleanup(s.Close)
	return func() (*kubeapi.Client, error) { return kubeapi.FromKubeconfigBytes(kubeconfigOf(s)) }
}

func TestDialer(t *testing.T) {
	target := hello(t, "here")
	for name, tc := range map[string]*struct {
		dialer Dialer
		to     string
		want   string
		err    string
	}{
		"When a target is an address it should go by the tunnel":                    {to: "10.0.0.1:443", want: "tunnel 10.0.0.1:443"},
		"When a target is a Service it should have its address":                     {dialer: Dialer{PreferIPv4: true}, to: "web.shop.svc:443", want: "tunnel 172.31.0.7:443"},
		"When nothing is preferred it should be the first address":                  {to: "web.shop.svc.cluster.local:443", want: "tunnel [fd02::7]:443"},
		"When a Service isn't there it should say which":                            {to: "none.shop.svc:443", err: "finding Service shop/none"},
		"When a target is another name the other end should resolve it":             {to: "idp.example.com:443", want: "tunnel idp.example.com:443"},
		"When the resolver is off a Service should be left to the other end, too":   {dialer: Dialer{DisableResolver: true}, to: "web.shop.svc:443", want: "tunnel web.shop.svc:443"},
		"When a cloud is to be reached directly it should be":                       {dialer: Dialer{ConnectDirectlyToCloudAPIs: true}, to: "ec2.us-east-1.amazonaws.com:443", want: "direct ec2.us-east-1.amazonaws.com:443"},
		"When a cloud isn't to be reached directly it should go by the tunnel":      {to: "ec2.us-east-1.amazonaws.com:443", want: "tunnel ec2.us-east-1.amazonaws.com:443"},
		"When a name only ends like a cloud it should go by the tunnel":             {dialer: Dialer{ConnectDirectlyToCloudAPIs: true}, to: "notamazonaws.com:443", want: "tunnel notamazonaws.com:443"},
		"When this pod's DNS may be asked and the hosted one isn't there it should": {dialer: Dialer{ResolveFromGuestClusterDNS: true, ResolveFromManagementClusterDNS: true}, to: "idp.example.com:443", want: "tunnel 192.0.2.1:443"},
		"When only the hosted DNS may be asked and isn't there it should say so":    {dialer: Dialer{ResolveFromGuestClusterDNS: true}, to: "idp.example.com:443", err: "finding the DNS of the hosted cluster"},
		"When the hosted cluster has a proxy it should be reached by the tunnel":    {dialer: Dialer{GuestProxy: httpproxy.Config{HTTPSProxy: "http://10.9.9.9:3128"}}, to: "idp.example.com:443", want: "tunnel 10.9.9.9:3128"},
		"When the hosted cluster needs no proxy for a target it should go without":  {dialer: Dialer{GuestProxy: httpproxy.Config{HTTPSProxy: "http://10.9.9.9:3128", NoProxy: "example.com"}}, to: "idp.example.com:443", want: "tunnel idp.example.com:443"},
		"When the management cluster has a proxy clouds should be reached by it":    {dialer: Dialer{ConnectDirectlyToCloudAPIs: true, ManagementProxy: httpproxy.Config{HTTPSProxy: "http://10.8.8.8"}}, to: "sts.amazonaws.com:443", want: "direct 10.8.8.8:80"},
		"When a target has no port it should say what is wanted":                    {to: "idp.example.com", err: "is not host:port"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := &fakeNet{hosts: map[string]string{}}
			if _, address, ok := strings.Cut(tc.want, " "); ok {
				n.hosts[address] = target
			}
			if strings.HasSuffix(tc.want, "3128") || strings.HasSuffix(tc.want, ":80") {
				_, address, _ := strings.Cut(tc.want, " ")
				n.hosts[address] = proxyFor(t, target)
			}
			d := &tc.dialer
			d.Tunnel, d.Direct, d.API = n.dial("tunnel"), n.dial("direct"), hostedAPI(t)
			d.LookupHost = func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil }
			conn, err := d.DialContext(t.Context(), "https", tc.to)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			defer conn.Close()
			g.Expect(n.log()).To(Equal([]string{tc.want}))
			_, err = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
			g.Expect(err).NotTo(HaveOccurred())
			got, err := io.ReadAll(conn)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(got)).To(HaveSuffix("here"))
		})
	}
}

// proxyFor is an HTTP proxy that leads everybody to one target.
func proxyFor(t *testing.T, target string) string {
	t.Helper()
	d := &Dialer{DisableResolver: true, Tunnel: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", target)
	}}
	s := httptest.NewServer(connectHandler(d, slog.New(slog.DiscardHandler)))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestProxies(t *testing.T) {
	n := &fakeNet{hosts: map[string]string{"idp.example.com:80": hello(t, "by name"), "10.1.2.3:80": hello(t, "by address"), "[fd02::1]:80": hello(t, "by IPv6")}}
	d := &Dialer{Tunnel: n.dial("tunnel"), DisableResolver: true}
	get := func(g Gomega, c *http.Client, url string) string {
		res, err := c.Get(url)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		g.Expect(err).NotTo(HaveOccurred())
		return string(body)
	}
	t.Run("When a container speaks SOCKS 5 it should reach names and addresses", func(t *testing.T) {
		g := NewWithT(t)
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() { _ = serveSocks(t.Context(), conn, d) }()
			}
		}()
		socks, err := proxy.SOCKS5("tcp", l.Addr().String(), nil, proxy.Direct)
		g.Expect(err).NotTo(HaveOccurred())
		c := &http.Client{Transport: &http.Transport{Dial: socks.Dial, DisableKeepAlives: true}} //nolint:staticcheck // the proxy package has no other
		g.Expect(get(g, c, "http://idp.example.com")).To(Equal("by name"))
		g.Expect(get(g, c, "http://10.1.2.3")).To(Equal("by address"))
		g.Expect(get(g, c, "http://[fd02::1]")).To(Equal("by IPv6"))
		g.Expect(get(g, c, "http://none.example.com")).To(ContainSubstring("general SOCKS server failure"))
	})
	t.Run("When a container speaks HTTP to the proxy it should reach them, too", func(t *testing.T) {
		g := NewWithT(t)
		s := httptest.NewServer(connectHandler(d, slog.New(slog.DiscardHandler)))
		defer s.Close()
		at, err := url.Parse(s.URL)
		g.Expect(err).NotTo(HaveOccurred())
		c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at), DisableKeepAlives: true}}
		g.Expect(get(g, c, "http://idp.example.com")).To(Equal("by name"))
		g.Expect(get(g, c, "http://none.example.com")).To(ContainSubstring("none.example.com:80 is not there"))
		g.Expect(get(g, http.DefaultClient, s.URL)).To(ContainSubstring("this is a proxy"))
	})
}

func TestPipe(t *testing.T) {
	// pair is both ends of a connection.
	pair := func(t *testing.T) (ours, theirs *net.TCPConn) {
		g := NewWithT(t)
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		defer l.Close()
		there, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		here, err := l.Accept()
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _, _ = here.Close(), there.Close() })
		return here.(*net.TCPConn), there.(*net.TCPConn)
	}
	start := func(t *testing.T, halfClosed time.Duration) (client, target *net.TCPConn, done chan struct{}) {
		a, client := pair(t)
		b, target := pair(t)
		done = make(chan struct{})
		go func() { defer close(done); pipe(t.Context(), a, b, halfClosed) }()
		return client, target, done
	}
	for name, tc := range map[string]func(client, target *net.TCPConn) error{
		"When the client has ended it should not wait for a target that never does":  func(client, _ *net.TCPConn) error { return client.Close() },
		"When the target has ended it should not wait for a client that never does":  func(_, target *net.TCPConn) error { return target.CloseWrite() },
		"When the client has said all it should not wait for a target without words": func(client, _ *net.TCPConn) error { return client.CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client, target, done := start(t, 20*time.Millisecond)
			g.Consistently(done).WithTimeout(100*time.Millisecond).ShouldNot(BeClosed(), "nobody has ended")
			g.Expect(tc(client, target)).To(Succeed())
			g.Eventually(done).WithTimeout(30 * time.Second).Should(BeClosed())
		})
	}
	t.Run("When the client has said all it should get an answer that takes its time", func(t *testing.T) {
		g := NewWithT(t)
		client, target, done := start(t, time.Second)
		g.Expect(client.CloseWrite()).To(Succeed())
		const parts = 50
		go func() {
			defer target.Close()
			for range parts {
				_, _ = io.WriteString(target, "part ")
				time.Sleep(50 * time.Millisecond) // all parts together take more than twice the bound
			}
		}()
		got, err := io.ReadAll(client)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(Equal(strings.Repeat("part ", parts)))
		g.Eventually(done).WithTimeout(30 * time.Second).Should(BeClosed())
	})
}

func TestGreet(t *testing.T) {
	for name, tc := range map[string]struct{ sent, want, err string }{
		"When a client names a host it should be that":         {sent: "\x05\x01\x00\x05\x01\x00\x03\x05a.com\x01\xbb", want: "a.com:443"},
		"When a client speaks version 4 it should be refused":  {sent: "\x04\x01", err: "version 4"},
		"When a client wants a password it should be refused":  {sent: "\x05\x01\x02", err: "authenticate"},
		"When a client wants to listen it should be refused":   {sent: "\x05\x01\x00\x05\x02\x00\x01", err: "command 2"},
		"When an address is of no known kind it should say so": {sent: "\x05\x01\x00\x05\x01\x00\x09", err: "kind 9"},
		"When a name is empty it should be refused":            {sent: "\x05\x01\x00\x05\x01\x00\x03\x00", err: "kind 3"},
		"When a client leaves in the middle it should end":     {sent: "\x05\x01\x00\x05\x01\x00\x01\x0a", err: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ours, theirs := net.Pipe()
			go func() {
				_, _ = io.WriteString(theirs, tc.sent)
				if tc.err == "EOF" {
					_ = theirs.Close()
				}
			}()
			go func() { _, _ = io.Copy(io.Discard, bufio.NewReader(theirs)) }()
			got, err := greet(ours)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
	t.Run("When nothing can be said of a target the error should not be lost", func(t *testing.T) {
		d := &Dialer{Tunnel: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no node") }}
		_, err := d.DialContext(t.Context(), "https", "10.0.0.1:443")
		NewWithT(t).Expect(err).To(MatchError("no node"))
	})
}

func kubeconfigOf(s *httptest.Server) []byte {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: t}}]
`, s.URL, ca)
}
