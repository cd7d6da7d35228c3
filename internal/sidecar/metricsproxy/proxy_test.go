package metricsproxy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/sidecar/endpointresolver"
)

func TestMerger(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"When a sample has no labels it should get them":               {"up 1", `up{pod="a",job="j"} 1`},
		"When it has one of them it should keep its own":               {`up{job="mine"} 1`, `up{job="mine",pod="a"} 1`},
		"When a value has braces and quotes it should not be misread":  {`up{x="}\",job=\"z"} 1 1234`, `up{x="}\",job=\"z",pod="a",job="j"} 1 1234`},
		"When it isn't kept it should be left out, and its comments":   {"# TYPE secret counter\nsecret 1", ""},
		"When a family has comments they should come once, before":     {"# HELP up x\n# TYPE up gauge\nup 1\nup{x=\"2\"} 1", "# HELP up x\n# TYPE up gauge\nup{pod=\"a\",job=\"j\"} 1\nup{x=\"2\",pod=\"a\",job=\"j\"} 1"},
		"When a line is nonsense it should be left out":                {"up{ 1\n}{\nup\n=\x00", ""},
		"When it is a histogram its type should come with the buckets": {"# TYPE h histogram\nh_bucket{le=\"1\"} 2", "# TYPE h histogram\nh_bucket{le=\"1\",pod=\"a\",job=\"j\"} 2"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := merger{keep: func(n string) bool { return n != "secret" }, headed: map[string]bool{}}
			g.Expect(m.add(strings.NewReader(tc.in), []label{{"pod", "a"}, {"job", "j"}, {"service", ""}})).To(Succeed())
			g.Expect(strings.TrimSpace(m.out.String())).To(Equal(tc.want))
		})
	}
}

func FuzzMerger(f *testing.F) {
	f.Add(`up{x="}\""} 1`)
	f.Fuzz(func(t *testing.T, in string) {
		m := merger{keep: func(string) bool { return true }, headed: map[string]bool{}}
		_ = m.add(strings.NewReader(in), []label{{"pod", "a"}})
		for _, line := range strings.Split(strings.TrimSpace(m.out.String()), "\n") {
			if line != "" && !strings.HasPrefix(line, "#") && !strings.Contains(line, "pod=") && !strings.Contains(line, "pod =") {
				t.Fatalf("%q has no pod", line)
			}
		}
	})
}

// world is a control plane of two pods of one component, one of which is down.
func world(t *testing.T) *proxy {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) }))
	t.Cleanup(up.Close)
	host, port, _ := net.SplitHostPort(up.Listener.Addr().String())
	resolver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q endpointresolver.Question
		_ = json.NewDecoder(r.Body).Decode(&q)
		switch q.Selector["app"] {
		case "none":
			http.Error(w, "none", http.StatusNotFound)
		case "down":
			_ = json.NewEncoder(w).Encode(endpointresolver.Answer{Pods: []endpointresolver.Pod{{Name: "d", IP: "not an address"}}})
		default:
			_ = json.NewEncoder(w).Encode(endpointresolver.Answer{Pods: []endpointresolver.Pod{{Name: "a", IP: host}, {Name: "b", IP: "not an address"}}})
		}
	}))
	t.Cleanup(resolver.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	write := func(file string, content []byte) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: resolver.Certificate().Raw}))
	n, _ := strconv.Atoi(port)
	var c config
	c.EndpointResolver.URL, c.EndpointResolver.CAFile = resolver.URL, ca
	for _, app := range []string{"web", "none", "down"} {
		c.Components = append(c.Components, target{Name: app, Selector: map[string]string{"app": app}, MetricsPort: int32(n), MetricsPath: "/metrics", MetricsScheme: "http", MetricsJob: "j"})
	}
	raw, _ := json.Marshal(c)
	write(filepath.Join(dir, "config.yaml"), raw)
	return &proxy{configFile: filepath.Join(dir, "config.yaml"), set: "All", log: t.Logf}
}

func TestProxy(t *testing.T) {
	p := world(t)
	for name, tc := range map[string]struct {
		path      string
		anonymous bool
		code      int
		says      []string
	}{
		"When a pod is down it should tell of the others, and count it": {path: "/metrics/web", code: 200, says: []string{`up{pod="a",job="j",instance="127.0.0.1:`, `metrics_aggregator_pod_scrape_errors_total{component="web",pod="b"} 1`}},
		"When all are down it should say so":                            {path: "/metrics/down", code: 502},
		"When there are no pods it should be empty":                     {path: "/metrics/none", code: 200},
		"When there is no such component it should say so":              {path: "/metrics/other", code: 404},
		"When the path is malformed it should say how it is":            {path: "/metrics/A_B", code: 400},
		"When who asks has no certificate he should get nothing":        {path: "/metrics/web", anonymous: true, code: 401},
		"When health is asked for anybody should be answered":           {path: "/healthz", anonymous: true, code: 200},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := httptest.NewRequest(http.MethodGet, tc.path, nil)
			if !tc.anonymous {
				r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
			}
			w := httptest.NewRecorder()
			p.handler().ServeHTTP(w, r)
			g.Expect(w.Code).To(Equal(tc.code), w.Body.String())
			for _, text := range tc.says {
				g.Expect(w.Body.String()).To(ContainSubstring(text))
			}
		})
	}
}
