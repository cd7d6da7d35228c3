package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/capigroup/translate"
)

const (
	machinesPath = "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines"
	storedGV     = translate.Private + "/v1beta2"
	viewGV       = translate.Standard + "/v1beta2"
)

// apiServer starts a server that speaks HTTP/2, and a proxy before it.
func apiServer(t testing.TB, handler http.HandlerFunc, change ...func(*UpstreamConfig)) (front *httptest.Server, back *httptest.Server) {
	t.Helper()
	back = httptest.NewUnstartedServer(handler)
	back.EnableHTTP2 = true
	back.StartTLS()
	t.Cleanup(back.Close)
	return before(t, back, change...), back
}

func before(t testing.TB, back *httptest.Server, change ...func(*UpstreamConfig)) *httptest.Server {
	t.Helper()
	conf := UpstreamConfig{URL: back.URL, CAFile: caFile(t, back)}
	for _, c := range change {
		c(&conf)
	}
	up, err := NewUpstream(conf)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(New(Config{Upstream: up}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front
}

func caFile(t testing.TB, s *httptest.Server) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.crt")
	writeFile(t, name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return name
}

func writeFile(t testing.TB, name string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// response is what tests look at of an answer.
type response struct {
	StatusCode int
	Proto      string
	Header     http.Header
	Trailer    http.Header
}

func ask(t testing.TB, method, url, contentType, body string, headers ...string) (response, string) {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return response{resp.StatusCode, resp.Proto, resp.Header, resp.Trailer}, string(raw)
}

func answerJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

func expectStatus(g *WithT, body, reason string, code int) {
	var s struct {
		Kind, APIVersion, Status, Reason, Message string
		Code                                      int
	}
	g.Expect(json.Unmarshal([]byte(body), &s)).To(Succeed(), body)
	g.Expect([]any{s.Kind, s.APIVersion, s.Status, s.Reason, s.Code}).To(Equal([]any{"Status", "v1", "Failure", reason, code}))
	g.Expect(s.Message).NotTo(BeEmpty())
}

func TestPassage(t *testing.T) {
	var got *http.Request
	var gotBody []byte
	front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		gotBody, _ = io.ReadAll(r.Body)
		w.Header().Add("Warning", `299 - "`+storedGV+` Machine is old"`)
		w.Header().Set("Audit-Id", "7")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(gotBody)
	})
	t.Run("When an object is created it should be stored privately, and look as it was sent", func(t *testing.T) {
		g := NewWithT(t)
		body := `{"apiVersion":"` + viewGV + `","kind":"Machine","metadata":{"labels":{"cluster.x-k8s.io/x":"y"}}}`
		resp, back := ask(t, "POST", front.URL+machinesPath+"?fieldManager=a%20b", "application/json", body, "Authorization", "Bearer mine", "Impersonate-User", "u", "User-Agent", "stock/1")
		g.Expect(resp.StatusCode).To(Equal(201))
		g.Expect(back).To(Equal(body))
		g.Expect(resp.Header["Warning"]).To(Equal([]string{`299 - "` + viewGV + ` Machine is old"`}))
		g.Expect(resp.Header.Get("Audit-Id")).To(Equal("7"))
		g.Expect(string(gotBody)).To(Equal(strings.Replace(body, viewGV, storedGV, 1)))
		g.Expect(got.URL.RequestURI()).To(Equal("/apis/cluster.hypershift.openshift.io/v1beta2/namespaces/n/machines?fieldManager=a%20b"))
		g.Expect(got.Proto).To(Equal("HTTP/2.0"))
		g.Expect(got.ContentLength).To(Equal(int64(len(gotBody))))
		g.Expect(got.Header.Get("Authorization")).To(Equal("Bearer mine"))
		g.Expect(got.Header.Get("Impersonate-User")).To(Equal("u"))
		g.Expect(got.Header.Get("User-Agent")).To(Equal("stock/1"))
		g.Expect(got.Header).NotTo(HaveKey("X-Forwarded-For"))
	})
	t.Run("When an applied object is YAML it should be stored all the same", func(t *testing.T) {
		g := NewWithT(t)
		ask(t, "PATCH", front.URL+machinesPath+"/m", "application/apply-patch+yaml", "apiVersion: "+viewGV+"\nkind: Machine\n")
		g.Expect(string(gotBody)).To(MatchJSON(`{"apiVersion":"` + storedGV + `","kind":"Machine"}`))
		g.Expect(got.Header.Get("Content-Type")).To(Equal("application/apply-patch+yaml"))
	})
	t.Run("When a body is larger than what is held it should stream", func(t *testing.T) {
		g := NewWithT(t)
		body := `{"apiVersion":"` + viewGV + `","data":"` + strings.Repeat("x", 1400<<10) + `"}`
		_, back := ask(t, "POST", front.URL+machinesPath, "application/json", body)
		g.Expect(back == body).To(BeTrue())
		g.Expect(bytes.HasPrefix(gotBody, []byte(`{"apiVersion":"`+storedGV))).To(BeTrue())
	})
	t.Run("When a body isn't JSON, or something follows it, it should go on as it is", func(t *testing.T) {
		g := NewWithT(t)
		for _, body := range []string{"\xef\xbb\xbf{}", `{"a":`, "{}garbage", "{\"a\":\"\x00\"}", "\xff"} {
			ask(t, "POST", front.URL+machinesPath, "application/json", body)
			g.Expect(string(gotBody)).To(Equal(body))
		}
	})
	t.Run("When a body is of a type that can't be translated it should be refused as Kubernetes does", func(t *testing.T) {
		g := NewWithT(t)
		got = nil
		for _, media := range []string{"application/cbor", "application/apply-patch+cbor", "text/csv"} {
			resp, body := ask(t, "POST", front.URL+machinesPath, media, "x")
			g.Expect(resp.StatusCode).To(Equal(415))
			expectStatus(g, body, "UnsupportedMediaType", 415)
		}
		resp, body := ask(t, "GET", front.URL+machinesPath, "", "", "Accept", "application/cbor")
		g.Expect(resp.StatusCode).To(Equal(406))
		expectStatus(g, body, "NotAcceptable", 406)
		g.Expect(got).To(BeNil())
	})
	t.Run("When OpenAPI is asked for in a form that can't be translated it should be refused, so that clients take another", func(t *testing.T) {
		g := NewWithT(t)
		got = nil
		for _, path := range []string{"/openapi/v3/apis/cluster.x-k8s.io/v1beta2", "/openapi/v3"} {
			resp, body := ask(t, "GET", front.URL+path, "", "", "Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf")
			g.Expect(resp.StatusCode).To(Equal(406))
			expectStatus(g, body, "NotAcceptable", 406)
		}
		resp, _ := ask(t, "GET", front.URL+"/openapi/v3", "", "", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
		g.Expect(resp.StatusCode).To(Equal(406))
		g.Expect(got).To(BeNil())
	})
	t.Run("When OpenAPI in protobuf is broken it should be refused, so that clients take JSON", func(t *testing.T) {
		g := NewWithT(t)
		for _, media := range []string{"application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"} {
			front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
				g.Expect(r.Header.Get("Accept")).To(Equal(media))
				w.Header().Set("Content-Type", media)
				_, _ = io.WriteString(w, "\x42\x7fcluster.x-k8s.io")
			})
			resp, body := ask(t, "GET", front.URL+"/openapi/v2", "", "", "Accept", media)
			g.Expect(resp.StatusCode).To(Equal(406))
			expectStatus(g, body, "NotAcceptable", 406)
		}
	})
	t.Run("When a body is larger than the API server reads it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		resp, body := ask(t, "PATCH", front.URL+machinesPath+"/m", "application/json-patch+json", "["+strings.Repeat(" ", maxRequest)+"]")
		g.Expect(resp.StatusCode).To(Equal(413))
		expectStatus(g, body, "RequestEntityTooLarge", 413)
	})
	t.Run("When a body nests too deeply it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		resp, body := ask(t, "POST", front.URL+machinesPath, "application/json", `{"spec":"`+strings.Repeat("x", smallBody)+`","status":`+strings.Repeat("[", 10000))
		g.Expect(resp.StatusCode).To(Equal(400))
		expectStatus(g, body, "BadRequest", 400)
	})
}

func TestRefusals(t *testing.T) {
	var reached atomic.Int32
	front, _ := apiServer(t, func(w http.ResponseWriter, _ *http.Request) { reached.Add(1) })
	address := strings.TrimPrefix(front.URL, "http://")
	for name, request := range map[string]string{
		"an absolute URI":      "GET http://evil.example/apis HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"a tunnel":             "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
		"another host":         "GET /apis HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"dots":                 "GET /apis/x/../cluster.x-k8s.io/v1/machines HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"escaped dots":         "GET /apis/x/%2e%2e/cluster.x-k8s.io/v1/machines HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"an escaped slash":     "GET /apis/cluster.x-k8s.io%2fv1beta2/machines HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"two slashes":          "GET //apis/cluster.x-k8s.io/v1beta2/machines HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"the private groups":   "GET /apis/cluster.hypershift.openshift.io/v1beta2/machines HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"a private definition": "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.cluster.hypershift.openshift.io HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"an asterisk":          "OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
	} {
		t.Run("When a request names "+name+" it should not get through", func(t *testing.T) {
			g := NewWithT(t)
			conn, err := net.Dial("tcp", address)
			g.Expect(err).NotTo(HaveOccurred())
			defer conn.Close()
			g.Expect(conn.SetDeadline(time.Now().Add(20 * time.Second))).To(Succeed())
			_, err = io.WriteString(conn, request)
			g.Expect(err).NotTo(HaveOccurred())
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			g.Expect(err).NotTo(HaveOccurred())
			defer resp.Body.Close()
			if name == "an asterisk" { // net/http answers that by itself
				return
			}
			g.Expect(resp.StatusCode).To(BeElementOf(400, 403, 404, 405))
			g.Expect(resp.Header.Get("Content-Type")).To(Equal("application/json"))
		})
	}
	NewWithT(t).Expect(reached.Load()).To(BeZero())
}

func TestFailures(t *testing.T) {
	t.Run("When the API server refuses connections it should be unavailable, and say when to come again", func(t *testing.T) {
		g := NewWithT(t)
		front, back := apiServer(t, nil)
		back.Close()
		resp, body := ask(t, "GET", front.URL+machinesPath, "", "")
		g.Expect(resp.StatusCode).To(Equal(503))
		g.Expect(resp.Header.Get("Retry-After")).To(Equal("1"))
		expectStatus(g, body, "ServiceUnavailable", 503)
		g.Expect(body).NotTo(ContainSubstring("127.0.0.1"))
	})
	t.Run("When it answers with an error it should pass that with its headers", func(t *testing.T) {
		g := NewWithT(t)
		for _, code := range []int{400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504} {
			front, _ := apiServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "3")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","message":"machines.`+translate.Private+` \"x\"","details":{"group":"`+translate.Private+`"}}`)
			})
			for _, query := range []string{"", "/x", "?watch=1"} {
				resp, body := ask(t, "GET", front.URL+machinesPath+query, "", "")
				g.Expect(resp.StatusCode).To(Equal(code))
				g.Expect(resp.Header.Get("Retry-After")).To(Equal("3"))
				g.Expect(body).To(Equal(`{"kind":"Status","apiVersion":"v1","message":"machines.` + translate.Standard + ` \"x\"","details":{"group":"` + translate.Standard + `"}}`))
			}
		}
	})
	t.Run("When an answer breaks off it should never look complete", func(t *testing.T) {
		for name, cut := range map[string]func(w http.ResponseWriter){
			"by a reset":       func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
			"by its end alone": func(http.ResponseWriter) {},
		} {
			for _, size := range []int{10, 300 << 10} {
				g := NewWithT(t)
				front, _ := apiServer(t, func(w http.ResponseWriter, _ *http.Request) {
					answerJSON(w, `{"items":["`+strings.Repeat("x", size))
					_ = http.NewResponseController(w).Flush()
					cut(w)
				})
				resp, err := http.Get(front.URL + machinesPath)
				if err != nil {
					continue // before the headers: as good
				}
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusBadGateway { // before the headers, too
					g.Expect(err).To(HaveOccurred(), "%s after %d", name, size)
				}
			}
		}
	})
	t.Run("When a small answer is not JSON it should be an error of a gateway", func(t *testing.T) {
		g := NewWithT(t)
		front, _ := apiServer(t, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, `{"apiVersion":"`+storedGV+`"]`) })
		resp, body := ask(t, "GET", front.URL+machinesPath, "", "")
		g.Expect(resp.StatusCode).To(Equal(502))
		expectStatus(g, body, "InternalError", 502)
	})
	t.Run("When a client leaves a watch it should be cancelled at the API server at once", func(t *testing.T) {
		g := NewWithT(t)
		left := make(chan struct{})
		front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
			answerJSON(w, `{"type":"ADDED","object":{}}`+"\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(left)
		})
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+machinesPath+"?watch=true", nil)
		resp, err := http.DefaultClient.Do(req)
		g.Expect(err).NotTo(HaveOccurred())
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(line).To(Equal(`{"type":"ADDED","object":{}}` + "\n"))
		cancel()
		g.Eventually(left, "60s").Should(BeClosed())
		resp.Body.Close()
	})
	t.Run("When the proxy's server stops a watch should end for the client", func(t *testing.T) {
		g := NewWithT(t)
		front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
			answerJSON(w, "{}\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		resp, err := http.Get(front.URL + machinesPath + "?watch=true")
		g.Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		front.CloseClientConnections()
		_, err = io.ReadAll(resp.Body)
		g.Expect(err).To(HaveOccurred())
	})
}

func TestCredentials(t *testing.T) {
	var tokens sync.Map
	valid := atomic.Value{}
	valid.Store("one")
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		tokens.Store(r.Header.Get("Authorization"), string(body))
		if a := r.Header.Get("Authorization"); a != "Bearer "+valid.Load().(string) && a != "Bearer theirs" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answerJSON(w, "{}")
	}
	file := filepath.Join(t.TempDir(), "token")
	writeFile(t, file, []byte("one\n"))
	front, _ := apiServer(t, handler, func(c *UpstreamConfig) { c.TokenFile, c.Clock = file, clock.RealClock{} })
	g := NewWithT(t)
	resp, _ := ask(t, "GET", front.URL+machinesPath, "", "")
	g.Expect(resp.StatusCode).To(Equal(200))
	resp, _ = ask(t, "GET", front.URL+machinesPath, "", "", "Authorization", "Bearer theirs")
	g.Expect(resp.StatusCode).To(Equal(200))

	// The token is replaced before the proxy looks again: one 401 is answered by looking.
	writeFile(t, file, []byte("two"))
	valid.Store("two")
	resp, _ = ask(t, "POST", front.URL+machinesPath, "application/json", `{"x":1}`)
	g.Expect(resp.StatusCode).To(Equal(200))
	body, _ := tokens.Load("Bearer two")
	g.Expect(body).To(Equal(`{"x":1}`))

	// A token that is not valid is not tried for ever.
	valid.Store("three")
	resp, _ = ask(t, "GET", front.URL+machinesPath, "", "")
	g.Expect(resp.StatusCode).To(Equal(401))
	resp, _ = ask(t, "GET", front.URL+machinesPath, "", "", "Authorization", "Bearer wrong")
	g.Expect(resp.StatusCode).To(Equal(401))
}

func TestCARotation(t *testing.T) {
	g := NewWithT(t)
	now := &steppingClock{}
	now.now.Store(time.Unix(1e9, 0).UnixNano())
	other, err := newCertificate()
	g.Expect(err).NotTo(HaveOccurred())
	back := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, "{}") }))
	back.TLS = &tls.Config{Certificates: []tls.Certificate{other}}
	back.StartTLS()
	defer back.Close()
	unrelated := httptest.NewTLSServer(nil)
	defer unrelated.Close()
	file := caFile(t, unrelated)
	front := before(t, back, func(c *UpstreamConfig) { c.CAFile, c.Clock = file, now })
	resp, _ := ask(t, "GET", front.URL+machinesPath, "", "")
	g.Expect(resp.StatusCode).To(Equal(503))
	writeFile(t, file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate[0]}))
	now.now.Add(int64(time.Minute))
	resp, _ = ask(t, "GET", front.URL+machinesPath, "", "")
	g.Expect(resp.StatusCode).To(Equal(200))
	writeFile(t, file, []byte("half a fi"))
	now.now.Add(int64(time.Minute))
	resp, _ = ask(t, "GET", front.URL+machinesPath, "", "")
	g.Expect(resp.StatusCode).To(Equal(200), "a CA that can't be read leaves the old one")
}
