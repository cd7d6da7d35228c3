package connector

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
)

// patience is for what has to happen, however busy the machine is.
const patience = time.Minute

// small are limits that a test can exceed.
func small() Limits {
	return Limits{Body: 64 << 10, List: 128 << 10, Error: 1 << 10, Objects: 50, Request: patience, Watch: patience, WatchRate: 1 << 20}
}

// serve starts a TLS server and returns how to reach it.
func serve(t testing.TB, handler http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func connected(t testing.TB, cfg *rest.Config, limits Limits) *connection {
	t.Helper()
	c, err := connect(cfg, limits, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// trickle sends bytes for as long as somebody reads them.
func trickle(w http.ResponseWriter, req *http.Request, every time.Duration, chunk string) {
	for req.Context().Err() == nil {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-req.Context().Done():
		case <-time.After(every):
		}
	}
}

func TestProbe(t *testing.T) {
	const kubeSystem = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system"}}`
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		reason  string
		message string
	}{
		"When it answers it should find no trouble": {
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, kubeSystem) }, "", "",
		},
		"When the answer is forbidden it should find no trouble": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "", "",
		},
		"When it refuses the credentials it should say so": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, v1alpha1.ReasonTargetUnauthorized, "401",
		},
		"When it is overloaded it should not wait as long as it is told": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "86400")
				w.WriteHeader(http.StatusTooManyRequests)
			}, v1alpha1.ReasonTargetUnreachable, "429",
		},
		"When its etcd is gone it should say what it answers": {
			func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "etcdserver: leader changed", http.StatusServiceUnavailable)
			}, v1alpha1.ReasonTargetUnreachable, "503",
		},
		"When it redirects it should not follow": {
			func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/elsewhere" {
					fmt.Fprint(w, kubeSystem)
					return
				}
				http.Redirect(w, req, "/elsewhere", http.StatusTemporaryRedirect)
			}, v1alpha1.ReasonTargetMisbehaves, "redirects",
		},
		"When it is something else it should say so": {
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Sign in</html>") }, v1alpha1.ReasonTargetMisbehaves, "not one of Kubernetes",
		},
		"When it never answers it should give up": {
			func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }, v1alpha1.ReasonTargetUnreachable, "in time",
		},
		"When its body never ends it should give up": {
			func(w http.ResponseWriter, req *http.Request) { trickle(w, req, 10*time.Millisecond, " ") }, v1alpha1.ReasonTargetUnreachable, "in time",
		},
		"When its body is huge it should stop reading": {
			func(w http.ResponseWriter, req *http.Request) { trickle(w, req, 0, strings.Repeat(" ", 32<<10)) }, v1alpha1.ReasonTargetMisbehaves, "larger than allowed",
		},
		"When its header is huge it should stop reading": {
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, v1alpha1.ReasonTargetUnreachable, "connection",
		},
		"When an error is huge it should stop reading": {
			func(w http.ResponseWriter, req *http.Request) {
				w.WriteHeader(http.StatusConflict)
				trickle(w, req, 0, strings.Repeat("x", 32<<10))
			}, v1alpha1.ReasonTargetMisbehaves, "larger than allowed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			conn := connected(t, serve(t, c.handler), small())
			timeout := patience
			if c.message == "in time" {
				timeout = 300 * time.Millisecond // it passes in any case
			}
			trouble := conn.probe(t.Context(), timeout)
			if c.reason == "" {
				g.Expect(trouble).To(BeNil())
				return
			}
			g.Expect(trouble).NotTo(BeNil())
			g.Expect(trouble.Reason).To(Equal(c.reason))
			g.Expect(trouble.Message).To(ContainSubstring(c.message))
		})
	}
}

func TestProbeCertificates(t *testing.T) {
	ok := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"kind":"Namespace","metadata":{"name":"kube-system"}}`)
	}
	for name, c := range map[string]struct {
		change  func(*rest.Config)
		message string
	}{
		"When somebody else's authority has signed its certificate it should not talk to it": {
			func(cfg *rest.Config) { cfg.CAData = nil }, "not signed by the authority",
		},
		"When its certificate has another name it should not talk to it": {
			func(cfg *rest.Config) { cfg.ServerName = "other.example.org" }, "for another name",
		},
		"When nobody listens it should say so": {
			func(cfg *rest.Config) { cfg.Host = "https://127.0.0.1:1" }, "connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cfg := serve(t, ok)
			c.change(cfg)
			// The machine's own authorities are read, which takes long while it is busy.
			trouble := connected(t, cfg, small()).probe(t.Context(), patience)
			g.Expect(trouble).NotTo(BeNil())
			g.Expect(trouble.Reason).To(Equal(v1alpha1.ReasonTargetUnreachable))
			g.Expect(trouble.Message).To(ContainSubstring(c.message))
		})
	}
}

// listing is a target whose ConfigMaps are listed by handler.
func listing(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch req.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["list","watch","get"]}]}`)
		default:
			handler(w, req)
		}
	}
}

func configMaps(from, n int, pad, next string) string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(`{"metadata":{"namespace":"default","name":"c%d","uid":"%d","resourceVersion":"1","annotations":{"x":%q}}}`, from+i, from+i, pad))
	}
	return fmt.Sprintf(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1","continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
}

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

func TestHugeLists(t *testing.T) {
	t.Run("When a list has no end it should stop reading", func(t *testing.T) {
		g := NewWithT(t)
		var pages atomic.Int64
		cfg := serve(t, listing(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Query().Get("watch") != "" {
				<-req.Context().Done()
				return
			}
			n := int(pages.Add(1))
			fmt.Fprint(w, configMaps(n*10, 10, strings.Repeat("x", 1000), fmt.Sprint(n)))
		}))
		s := opened(t, cfg, small())
		started := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = use(ctx, s) }()
		g.Eventually(func() *Trouble { return s.guard.since(started) }, patience).Should(HaveField("Message", ContainSubstring("larger than allowed")))
		g.Expect(pages.Load()).To(BeNumerically("<", 100), "some 13 pages for each of a few tries")
	})
	t.Run("When there are more objects than allowed it should name their kind", func(t *testing.T) {
		g := NewWithT(t)
		cfg := serve(t, listing(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Query().Get("watch") != "" {
				<-req.Context().Done()
				return
			}
			fmt.Fprint(w, configMaps(0, 60, "", ""))
		}))
		s := opened(t, cfg, small())
		g.Expect(s.overflow(t.Context())).To(BeNil())
		g.Eventually(func() error { return use(t.Context(), s) }, patience).Should(Succeed())
		g.Eventually(func() *Trouble { return s.overflow(t.Context()) }, patience).ShouldNot(BeNil())
		g.Expect(s.overflow(t.Context())).To(HaveField("Message", ContainSubstring("more than 50 objects of kind ConfigMap")))
	})
}

// use watches ConfigMaps for one more user.
func use(ctx context.Context, s *session) error {
	late, err := s.watches.Use(ctx, uuid.NewUUID(), []schema.GroupVersionKind{configMapKind})
	if err == nil && len(late) > 0 {
		err = fmt.Errorf("%v can't be listed", late)
	}
	return err
}

func opened(t testing.TB, cfg *rest.Config, limits Limits) *session {
	t.Helper()
	s, err := connected(t, cfg, limits).open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	go func() { _ = s.watches.Start(s.ctx) }()
	return s
}

func TestGuard(t *testing.T) {
	get := func(t testing.TB, handler http.HandlerFunc) error {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(configMapKind)
		s := opened(t, serve(t, listing(handler)), small())
		return s.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, obj)
	}
	t.Run("When an object is huge it should not be read", func(t *testing.T) {
		g := NewWithT(t)
		err := get(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"data":{"a":%q}}`, strings.Repeat("x", 100<<10))
		})
		var trouble *Trouble
		g.Expect(errors.As(err, &trouble)).To(BeTrue(), "%v", err)
	})
	t.Run("When an object is deeply nested it should not crash", func(t *testing.T) {
		g := NewWithT(t)
		err := get(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"kind":"ConfigMap","apiVersion":"v1","data":`+strings.Repeat("[", 30_000)+strings.Repeat("]", 30_000)+`}`)
		})
		g.Expect(err).To(HaveOccurred())
	})
	t.Run("When told to retry in a day it should not", func(t *testing.T) {
		g := NewWithT(t)
		started := time.Now()
		err := get(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":86400}}`)
		})
		g.Expect(err).To(HaveOccurred())
		g.Expect(time.Since(started)).To(BeNumerically("<", time.Hour))
	})
	t.Run("When events rush it should read them slowly", func(t *testing.T) {
		g := NewWithT(t)
		limits := small()
		limits.WatchRate = 64 << 10
		var sent atomic.Int64
		cfg := serve(t, listing(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Query().Get("watch") == "" {
				fmt.Fprint(w, configMaps(0, 1, "", ""))
				return
			}
			if req.URL.Query().Get("sendInitialEvents") == "true" {
				t.Error("a list as a stream was asked for")
			}
			event := `{"type":"MODIFIED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":"default","name":"c0","uid":"0","resourceVersion":"%d","annotations":{"x":"` + strings.Repeat("x", 60<<10) + `"}}}}` + "\n"
			for i := 2; req.Context().Err() == nil; i++ {
				n, err := fmt.Fprintf(w, event, i)
				if err != nil {
					return
				}
				sent.Add(int64(n))
			}
		}))
		s := opened(t, cfg, limits)
		g.Eventually(func() error { return use(t.Context(), s) }, patience).Should(Succeed())
		g.Eventually(sent.Load, patience).Should(BeNumerically(">", watchBurst/2))
		before := sent.Load()
		g.Consistently(func() int64 { return sent.Load() - before }, 2*time.Second).Should(BeNumerically("<", 2*watchBurst))
	})
}
