package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"
)

// fronted is apiServer's proxy with metrics to look at.
func fronted(t *testing.T, handler http.HandlerFunc) (front *httptest.Server, metrics func() string) {
	t.Helper()
	back := httptest.NewUnstartedServer(handler)
	back.EnableHTTP2 = true
	back.StartTLS()
	t.Cleanup(back.Close)
	up, err := NewUpstream(UpstreamConfig{URL: back.URL, CAFile: caFile(t, back)})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	m := NewMetrics()
	front = httptest.NewServer(New(Config{Upstream: up, Metrics: m}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front, func() string {
		var out bytes.Buffer
		m.Write(&out)
		return out.String()
	}
}

// frame is an event of a watch in protobuf.
func frame(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	g := NewWithT(t)
	var raw bytes.Buffer
	g.Expect(protobuf.NewSerializer(nil, nil).Encode(object, &raw)).To(Succeed())
	event := metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: raw.Bytes()}}
	out, err := event.Marshal()
	g.Expect(err).NotTo(HaveOccurred())
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(out))), out...)
}

func TestProtobufWatchMetrics(t *testing.T) {
	g := NewWithT(t)
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: storedGV, Kind: "Cluster", Name: "c"}}}}
	event, more := frame(t, secret), make(chan struct{})
	front, metrics := fronted(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", typeProtobuf+";stream=watch")
		_, _ = w.Write(event)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte{0, 0, 0, 1, 0xff}) // no event
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+"/api/v1/secrets?watch=1", nil)
	g.Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Accept", typeProtobuf+";stream=watch")
	resp, err := http.DefaultTransport.RoundTrip(req)
	g.Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	got := make([]byte, len(event)-len(storedGV)+len(viewGV))
	_, err = io.ReadFull(resp.Body, got)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).To(ContainSubstring(viewGV))
	g.Expect(metrics()).To(ContainSubstring("watch_event_delay_seconds_count 1\n"), "an event was translated")
	g.Expect(metrics()).NotTo(ContainSubstring("hypershift_api_proxy_buffer_bytes 0\n"), "a watch holds its last event")

	close(more)
	_, _ = io.Copy(io.Discard, resp.Body)
	g.Eventually(metrics, "60s").Should(ContainSubstring("hypershift_api_proxy_buffer_bytes 0\n"))
	g.Eventually(metrics, "60s").Should(ContainSubstring(`translation_errors_total{error_type="invalid-protobuf"} 1`))
}

func TestUpgradesOfOthers(t *testing.T) {
	front, _ := fronted(t, func(w http.ResponseWriter, r *http.Request) {
		if !isUpgrade(r) {
			answerJSON(w, `{"kind":"Status","message":"not upgraded"}`)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + r.Header.Get("Upgrade") + "\r\n\r\n" + storedGV)
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString("echo " + line)
		_ = rw.Flush()
	})
	dial := func(t *testing.T, path string) (*bufio.Reader, net.Conn) {
		t.Helper()
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(front.URL, "http://"))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", path)
		return bufio.NewReader(conn), conn
	}
	t.Run("When a console of another API is opened it should be passed on, byte by byte", func(t *testing.T) {
		g := NewWithT(t)
		in, conn := dial(t, "/apis/subresources.kubevirt.io/v1/namespaces/n/virtualmachineinstances/vm/console")
		resp, err := http.ReadResponse(in, nil)
		g.Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		g.Expect(resp.StatusCode).To(Equal(http.StatusSwitchingProtocols))
		first := make([]byte, len(storedGV))
		_, err = io.ReadFull(in, first)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(first)).To(Equal(storedGV), "what is said there is not the API server's")
		_, _ = conn.Write([]byte("hello\n"))
		g.Expect(in.ReadString('\n')).To(Equal("echo hello\n"))
	})
	for name, path := range map[string]string{
		"When a watch asks for a WebSocket it should get none, as its events would pass as they are":   "/api/v1/pods?watch=1",
		"When an object asks for a WebSocket it should get none":                                       "/apis/apps/v1/namespaces/n/deployments/d",
		"When a subresource of Cluster API asks for a WebSocket it should get none, as nobody has one": machinesPath + "/m/status",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in, _ := dial(t, path)
			resp, err := http.ReadResponse(in, nil)
			g.Expect(err).NotTo(HaveOccurred())
			defer resp.Body.Close()
			g.Expect(resp.StatusCode).To(Equal(http.StatusOK))
		})
	}
}

func TestYAMLAnswers(t *testing.T) {
	accepted := make(chan string, 10)
	stored := `{"kind":"Machine","apiVersion":"` + storedGV + `","metadata":{"name":"m","resourceVersion":"12345678901234567890"},"spec":{"size":1234567890123456789}}`
	front, _ := fronted(t, func(w http.ResponseWriter, r *http.Request) {
		accepted <- r.Header.Get("Accept")
		if strings.HasSuffix(r.URL.Path, "/missing") {
			w.Header().Set("Content-Type", typeJSON)
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","message":"machines.` + storedGV[:strings.Index(storedGV, "/")] + ` \"missing\" not found"}`))
			return
		}
		answerJSON(w, stored)
	})
	t.Run("When YAML alone is taken it should be given as the API server would", func(t *testing.T) {
		g := NewWithT(t)
		resp, body := ask(t, "GET", front.URL+machinesPath+"/m", "", "", "Accept", typeYAML)
		g.Expect(resp.StatusCode).To(Equal(http.StatusOK))
		g.Expect(resp.Header.Get("Content-Type")).To(Equal(typeYAML))
		want, err := yaml.JSONToYAML([]byte(strings.ReplaceAll(stored, storedGV, viewGV)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(body).To(Equal(string(want)))
		g.Expect(body).To(ContainSubstring("size: 1234567890123456789\n"), "numbers stay whole")
		g.Expect(accepted).To(Receive(Equal(typeJSON)))
	})
	t.Run("When it is asked for as a table it should ask for the table", func(t *testing.T) {
		ask(t, "GET", front.URL+machinesPath, "", "", "Accept", typeYAML+";as=Table;g=meta.k8s.io;v=v1")
		NewWithT(t).Expect(accepted).To(Receive(Equal(typeJSON + ";as=Table;g=meta.k8s.io;v=v1")))
	})
	t.Run("When there is no such object it should say so in YAML", func(t *testing.T) {
		g := NewWithT(t)
		resp, body := ask(t, "GET", front.URL+machinesPath+"/missing", "", "", "Accept", typeYAML)
		g.Expect(resp.StatusCode).To(Equal(http.StatusNotFound))
		g.Expect(body).To(ContainSubstring("kind: Status\n"))
		g.Expect(body).To(ContainSubstring("machines.cluster.x-k8s.io"))
		g.Expect(accepted).To(Receive())
	})
	t.Run("When JSON is taken, too, it should be given", func(t *testing.T) {
		g := NewWithT(t)
		resp, body := ask(t, "GET", front.URL+machinesPath+"/m", "", "", "Accept", typeYAML+","+typeJSON)
		g.Expect(resp.Header.Get("Content-Type")).To(Equal(typeJSON))
		g.Expect(json.Valid([]byte(body))).To(BeTrue())
		g.Expect(accepted).To(Receive())
	})
	t.Run("When a watch is to be YAML it should be refused, as the API server refuses it", func(t *testing.T) {
		resp, _ := ask(t, "GET", front.URL+machinesPath+"?watch=1", "", "", "Accept", typeYAML)
		NewWithT(t).Expect(resp.StatusCode).To(Equal(http.StatusNotAcceptable))
		NewWithT(t).Expect(accepted).To(BeEmpty())
	})
}
