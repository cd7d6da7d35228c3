//go:build bench

package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hcp.internal/platform/internal/capigroup/translate"
)

// ways are the three that are compared: no proxy, Go's, and ours. All are HTTP/2 to the server with TLS.
func ways(b *testing.B, handler http.HandlerFunc) map[string]*http.Client {
	b.Helper()
	ours, back := apiServer(b, handler)
	roots := x509.NewCertPool()
	roots.AddCert(back.Certificate())
	transport := func() *http.Transport {
		return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, DisableCompression: true, MaxIdleConnsPerHost: 64} // TLS 1.2 is Go's least
	}
	target, err := url.Parse(back.URL)
	if err != nil {
		b.Fatal(err)
	}
	plain := httptest.NewServer(&httputil.ReverseProxy{Transport: transport(), BufferPool: copyBuffers, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	b.Cleanup(plain.Close)
	return map[string]*http.Client{
		"direct": {Transport: rebased{transport(), back.URL}}, "plain": {Transport: rebased{http.DefaultTransport, plain.URL}}, "ours": {Transport: rebased{http.DefaultTransport, ours.URL}},
	}
}

// rebased sends requests to one server.
type rebased struct {
	via  http.RoundTripper
	base string
}

func (r rebased) RoundTrip(req *http.Request) (*http.Response, error) {
	u, err := url.Parse(r.base)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = u.Scheme, u.Host
	return r.via.RoundTrip(req)
}

var order = []string{"direct", "plain", "ours"}

func storedMachine(i int) string {
	return fmt.Sprintf(`{"apiVersion":"%s","kind":"Machine","metadata":{"name":"m-%05d","labels":{"cluster.x-k8s.io/cluster-name":"c"},"ownerReferences":[{"apiVersion":"%s","kind":"MachineSet","name":"s"}],"managedFields":[{"apiVersion":"%s","fieldsV1":{%s"f:x":{}}}]},"spec":{"clusterName":"c","infrastructureRef":{"apiGroup":"infrastructure.%s","kind":"K","name":"m"}},"status":{"conditions":[%s{"type":"Ready","status":"True"}]}}`,
		storedGV, i, storedGV, storedGV, strings.Repeat(`"f:cluster.x-k8s.io/some-annotation":{".":{}},`, 60), translate.Private,
		strings.Repeat(`{"type":"Available","status":"True","reason":"Available","message":"all is well","lastTransitionTime":"2026-11-21T09:00:00Z"},`, 12))
}

// BenchmarkGet is a Machine, with the 50th and 99th percentile of the time that a client waits.
func BenchmarkGet(b *testing.B) {
	body := storedMachine(1)
	clients := ways(b, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, body) })
	for _, way := range order {
		b.Run(way, func(b *testing.B) {
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				begun := time.Now()
				read(b, clients[way], "http://127.0.0.1"+machinesPath+"/m")
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkList is 5,000 Machines.
func BenchmarkList(b *testing.B) {
	var all strings.Builder
	all.WriteString(`{"items":[`)
	for i := range 5000 {
		if i > 0 {
			all.WriteByte(',')
		}
		all.WriteString(storedMachine(i))
	}
	all.WriteString(`]}`)
	clients := ways(b, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, all.String()) })
	for _, way := range order {
		b.Run(way, func(b *testing.B) {
			b.SetBytes(int64(all.Len()))
			for b.Loop() {
				read(b, clients[way], "http://127.0.0.1"+machinesPath)
			}
		})
	}
}

// BenchmarkWatch is the delay of an event, from when the server writes it, at 1,000 a second.
func BenchmarkWatch(b *testing.B) {
	clients := ways(b, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			fmt.Fprintf(w, `{"type":"MODIFIED","object":%s,"at":%d}`+"\n", storedMachine(1), time.Now().UnixNano())
			_ = http.NewResponseController(w).Flush()
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
	})
	for _, way := range order {
		b.Run(way, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+machinesPath+"?watch=true", nil)
			if err != nil {
				b.Fatal(err)
			}
			resp, err := clients[way].Do(req)
			if err != nil {
				b.Fatal(err)
			}
			defer resp.Body.Close()
			lines := bufio.NewReaderSize(resp.Body, 64<<10)
			var took []time.Duration
			for b.Loop() {
				line, err := lines.ReadString('\n')
				if err != nil {
					b.Fatal(err)
				}
				var at int64
				_, _ = fmt.Sscanf(line[strings.LastIndexByte(line, ':')+1:], "%d", &at)
				took = append(took, time.Since(time.Unix(0, at)))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

func read(b *testing.B, c *http.Client, from string) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, from, nil)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK || n < 100 {
		b.Fatalf("%d bytes, status %d: %v", n, resp.StatusCode, err)
	}
}
