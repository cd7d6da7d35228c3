package server

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"hcp.internal/platform/internal/ignition/tokens"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const good = "5f0c1f1e-0c5c-4c57-9d5c-6c1b1b0c5a11"

func bearerOf(token string) string {
	return "Bearer " + base64.StdEncoding.EncodeToString([]byte(token))
}

func store(t testing.TB, expires time.Time) *tokens.Store {
	t.Helper()
	s := &tokens.Store{}
	s.Set(&tokens.Payload{Secret: "token-demo-1", NodePool: "clusters/demo", Data: []byte(`{"ignition":{}}`)}, tokens.Token{Value: good, Expires: expires})
	s.Set(&tokens.Payload{Secret: "token-broken-1", NodePool: "clusters/broken", Data: []byte(`{`), Invalid: true}, tokens.Token{Value: "broken", Expires: expires})
	return s
}

func TestHandler(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path string
		header       http.Header
		status       int
		body         string
	}{
		"When the token is good it should give the payload":       {path: "/ignition", header: http.Header{"Authorization": {bearerOf(good)}}, status: 200, body: `{"ignition":{}}`},
		"When something follows the path it should give it, too":  {path: "/ignition-3", header: http.Header{"Authorization": {bearerOf(good)}}, status: 200, body: `{"ignition":{}}`},
		"When only the head is asked for it should give that":     {method: "HEAD", path: "/ignition", header: http.Header{"Authorization": {bearerOf(good)}}, status: 200},
		"When health is asked for it should say so":               {path: "/healthz", status: 200, body: "ok\n"},
		"When the path is another it should not be found":         {path: "/", header: http.Header{"Authorization": {bearerOf(good)}}, status: 404, body: refusal},
		"When the path goes deeper it should not be found":        {path: "/ignition/x", header: http.Header{"Authorization": {bearerOf(good)}}, status: 404, body: refusal},
		"When the path only ends like it it should not be found":  {path: "/x/ignition", header: http.Header{"Authorization": {bearerOf(good)}}, status: 404, body: refusal},
		"When it is a POST it should not be allowed":              {method: "POST", path: "/ignition", header: http.Header{"Authorization": {bearerOf(good)}}, status: 405, body: refusal},
		"When there is no header it should be unauthorized":       {path: "/ignition", status: 401, body: refusal},
		"When there are two headers it should be unauthorized":    {path: "/ignition", header: http.Header{"Authorization": {bearerOf(good), bearerOf(good)}}, status: 401, body: refusal},
		"When the scheme is another it should be unauthorized":    {path: "/ignition", header: http.Header{"Authorization": {"Basic " + good}}, status: 401, body: refusal},
		"When the scheme is in lower case it should be, too":      {path: "/ignition", header: http.Header{"Authorization": {"bearer " + strings.TrimPrefix(bearerOf(good), "Bearer ")}}, status: 401, body: refusal},
		"When the token is not base64 it should be unauthorized":  {path: "/ignition", header: http.Header{"Authorization": {"Bearer %%%"}}, status: 401, body: refusal},
		"When the header is huge it should be unauthorized":       {path: "/ignition", header: http.Header{"Authorization": {bearerOf(strings.Repeat("x", 4096))}}, status: 401, body: refusal},
		"When the token is not known it should come back later":   {path: "/ignition", header: http.Header{"Authorization": {bearerOf("guess")}}, status: 511, body: refusal},
		"When the token is empty it should come back later":       {path: "/ignition", header: http.Header{"Authorization": {"Bearer "}}, status: 511, body: refusal},
		"When the token is in clear text it should not be taken":  {path: "/ignition", header: http.Header{"Authorization": {"Bearer " + good}}, status: 401, body: refusal},
		"When the payload is broken it should say that it failed": {path: "/ignition", header: http.Header{"Authorization": {bearerOf("broken")}}, status: 500, body: refusal},
		"When other headers lie it should not matter": {
			path: "/ignition", status: 200, body: `{"ignition":{}}`,
			header: http.Header{"Authorization": {bearerOf(good)}, "Nodepool": {"../../x"}, "Targetconfigversionhash": {"\x00"}, "X-Forwarded-For": {"1.2.3.4"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var served, failed atomic.Int32
			h := &Handler{
				Tokens: store(t, noon.Add(time.Hour)), Clock: clocktesting.NewFakeClock(noon), Limiter: &Limiter{}, Metrics: NewMetrics(prometheus.NewRegistry()),
				Served: func(*tokens.Payload) { served.Add(1) }, Failed: func(*tokens.Payload) { failed.Add(1) },
			}
			method := tc.method
			if method == "" {
				method = "GET"
			}
			req := httptest.NewRequestWithContext(t.Context(), method, "https://server"+tc.path, nil)
			for k, v := range tc.header {
				req.Header[k] = v
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			g.Expect(rec.Code).To(Equal(tc.status))
			g.Expect(rec.Body.String()).To(Equal(tc.body))
			if tc.status == 200 && strings.HasPrefix(tc.path, "/ignition") {
				g.Expect(rec.Header().Get("Content-Type")).To(Equal("application/json; charset=utf-8"))
				g.Expect(rec.Header().Get("Content-Length")).To(Equal("15"))
			}
			g.Expect(served.Load() == 1).To(Equal(tc.status == 200 && tc.body == `{"ignition":{}}`))
			g.Expect(failed.Load() == 1).To(Equal(tc.status == 500))
		})
	}
}

func TestExpiry(t *testing.T) {
	g := NewWithT(t)
	clk := clocktesting.NewFakeClock(noon)
	h := &Handler{Tokens: store(t, noon.Add(time.Hour)), Clock: clk}
	status := func() int {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/ignition", nil)
		req.Header.Set("Authorization", bearerOf(good))
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		return rec.Code
	}
	g.Expect(status()).To(Equal(200))
	clk.SetTime(noon.Add(time.Hour - time.Nanosecond))
	g.Expect(status()).To(Equal(200))
	clk.SetTime(noon.Add(time.Hour))
	g.Expect(status()).To(Equal(511), "a token that is replayed after its time")
}

func TestLimiter(t *testing.T) {
	g := NewWithT(t)
	l, a, b := &Limiter{}, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for range refusalBurst {
		g.Expect(l.Wait(a, noon)).To(BeZero())
	}
	g.Expect(l.Wait(a, noon)).To(Equal(refusalWait))
	g.Expect(l.Wait(b, noon)).To(BeZero(), "another source has its own")
	g.Expect(l.Wait(a, noon.Add(time.Second/refusalRate))).To(BeZero(), "one has come back")
	g.Expect(l.Wait(a, noon.Add(time.Second/refusalRate))).To(Equal(refusalWait))
	g.Expect(l.Wait(a, noon.Add(-time.Hour))).To(Equal(refusalWait), "a clock that was set back gives nothing")

	for n := range 3 * maxSources {
		l.Wait(netip.AddrFrom4([4]byte{11, 0, byte(n >> 8), byte(n)}), noon)
	}
	g.Expect(len(l.sources)).To(BeNumerically("<=", maxSources))
}

func TestSourceOf(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:5": "10.0.0.1", "[::ffff:10.0.0.1]:5": "10.0.0.1", "[fd00:1:2:3:4:5:6:7]:8": "fd00:1:2:3::", "[fe80::1%eth0]:1": "fe80::", "nonsense": "invalid IP",
	} {
		NewWithT(t).Expect(sourceOf(remote).String()).To(Equal(want), remote)
	}
}

// serve starts a server and returns its address and a client that trusts it.
func serve(t testing.TB, h *Handler, transport func(*http.Transport)) (string, *http.Client) {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ignition-server"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	cert, err := x509.ParseCertificate(der)
	g.Expect(err).NotTo(HaveOccurred())
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := &Server{Handler: h, Listener: l, Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
	}}
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 256}
	if transport != nil {
		transport(tr)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return l.Addr().String(), &http.Client{Transport: tr, Timeout: 10 * time.Second}
}

func get(t testing.TB, c *http.Client, addr, token string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/ignition", nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", bearerOf(token))
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func TestServer(t *testing.T) {
	g := NewWithT(t)
	h := &Handler{Tokens: store(t, time.Now().Add(time.Hour)), Clock: clock.RealClock{}, Limiter: &Limiter{}}
	addr, c := serve(t, h, func(tr *http.Transport) { tr.ForceAttemptHTTP2 = true })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/ignition", nil)
	g.Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Authorization", bearerOf(good))
	resp, err := c.Do(req)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resp.Body.Close()).To(Succeed())
	g.Expect(resp.StatusCode).To(Equal(200))
	g.Expect(resp.ProtoMajor).To(Equal(1), "no HTTP/2")

	t.Run("When TLS is too old it should refuse", func(t *testing.T) {
		tr := c.Transport.(*http.Transport).Clone()
		tr.TLSClientConfig.MinVersion, tr.TLSClientConfig.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		_, _, err := get(t, &http.Client{Transport: tr}, addr, good)
		NewWithT(t).Expect(err).To(HaveOccurred())
	})
	t.Run("When it is no HTTP it should answer 400 or close, and go on", func(t *testing.T) {
		g := NewWithT(t)
		pool := c.Transport.(*http.Transport).TLSClientConfig.RootCAs
		for _, garbage := range []string{"\x00\x01\x02\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET " + strings.Repeat("/", 64<<10) + " HTTP/1.1\r\n\r\n",
			"GET /ignition HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 10000) + "\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
			"POST /ignition HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n", "GET /ignition HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\nzz"} {
			conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}).DialContext(t.Context(), "tcp", addr)
			g.Expect(err).NotTo(HaveOccurred())
			_, _ = conn.Write([]byte(garbage))
			_ = conn.SetReadDeadline(time.Now().Add(3 * time.Second))
			if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				g.Expect(line).To(MatchRegexp(`^HTTP/1\.[01] [45]`))
			}
			_ = conn.Close()
		}
		status, _, err := get(t, c, addr, good)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status).To(Equal(200))
	})
}

func TestSlowConnectionsAreReplaced(t *testing.T) {
	g := NewWithT(t)
	h := &Handler{Tokens: store(t, time.Now().Add(time.Hour)), Clock: clock.RealClock{}, Limiter: &Limiter{}}
	addr, c := serve(t, h, nil)
	for range maxConnections + 200 { // all of them say nothing
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		g.Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
	}
	status, _, err := get(t, c, addr, good)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(Equal(200))
}

// Whoever holds the most connections loses one, and what is left adds up.
func TestFairListener(t *testing.T) {
	g := NewWithT(t)
	l := newFairListener(nil, 4)
	closed := map[*fairConn]bool{}
	open := func(source string) *fairConn {
		a, _ := net.Pipe()
		c := &fairConn{Conn: a, listener: l, source: netip.MustParseAddr(source)}
		if loser := l.add(c); loser != nil {
			g.Expect(loser.Close()).To(Succeed())
			closed[loser] = true
		}
		return c
	}
	healthy := open("10.0.0.9")
	first := open("10.0.0.1")
	for range 10 {
		open("10.0.0.1")
	}
	g.Expect(l.count).To(Equal(4))
	g.Expect(closed[healthy]).To(BeFalse())
	g.Expect(closed[first]).To(BeTrue())
	g.Expect(first.Close()).NotTo(HaveOccurred(), "closing twice counts once")
	g.Expect(healthy.Close()).To(Succeed())
	g.Expect(l.count).To(Equal(3))
}

// Guessing must not hurt machines with a token, even when both come from one address: whoever guesses waits, and machines don't. Times
// are for the benchmark; what is asserted here holds however busy the machine is.
func TestGuessing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	g := NewWithT(t)
	const guessers, requests = 100, 50
	h := &Handler{Tokens: store(t, time.Now().Add(time.Hour)), Clock: clock.RealClock{}, Limiter: &Limiter{}}
	addr, c := serve(t, h, func(tr *http.Transport) { tr.MaxIdleConnsPerHost = guessers + 1 })
	c.Timeout = time.Minute
	ctx, stop := context.WithCancel(t.Context())
	var guesses atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for n := range guessers {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				status, body, err := get(t, c, addr, fmt.Sprint("guess", n, i))
				if err != nil {
					continue
				}
				if status != 511 || body != refusal {
					t.Errorf("a guess gives %d %q", status, body)
				}
				guesses.Add(1)
			}
		})
	}
	for range requests {
		status, _, err := get(t, c, addr, good)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status).To(Equal(200))
	}
	stop()
	wg.Wait()
	passed := time.Since(start)
	most := float64(refusalBurst) + passed.Seconds()*refusalRate + guessers*(passed.Seconds()/refusalWait.Seconds()+1)
	g.Expect(float64(guesses.Load())).To(BeNumerically("<=", most), "%d connections guessed for %s", guessers, passed)
}
