package hostedcontrolplane

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"

	"hcp.internal/platform/internal/pki"
)

// apiServer is an HTTPS server, and what a kubeconfig says about it.
func apiServer(t *testing.T, answer http.HandlerFunc) target {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server.URL, CertificateAuthorityData: roots}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c"}},
		CurrentContext: "c",
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := targetOf(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestGetHealthz(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		change func(*target)
		want   string
	}{
		"When it is healthy it should be fine": {answer: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" {
				w.WriteHeader(http.StatusNotFound)
			}
		}},
		"When checks fail it should list them": {
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = fmt.Fprint(w, "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/rbac/bootstrap-roles failed: x\nhealthz check failed")
			},
			want: "/healthz answered 500: failing checks: etcd, poststarthook/rbac/bootstrap-roles",
		},
		"When a hostile server answers it should keep its text out": {
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = fmt.Fprint(w, "[-]<script> failed\n[-]"+strings.Repeat("a", 1000)+" failed\n"+strings.Repeat("x", 1<<20))
			},
			want: "/healthz answered 500",
		},
		"When it redirects it should not follow": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://example.invalid", http.StatusFound)
			},
			want: "/healthz answered 302",
		},
		"When the certificate is not ours it should not trust it": {
			answer: func(http.ResponseWriter, *http.Request) {},
			change: func(t *target) { t.roots = otherRoots },
			want:   "certificate signed by unknown authority",
		},
		"When nobody listens it should say so without the local port": {
			answer: func(http.ResponseWriter, *http.Request) {},
			change: func(t *target) { t.url = "https://127.0.0.1:1/healthz" },
			want:   "asking https://127.0.0.1:1/healthz: dial: connect: connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := apiServer(t, tc.answer)
			if tc.change != nil {
				tc.change(&target)
			}
			err := getHealthz(t.Context(), target)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(HaveSuffix(tc.want)))
		})
	}
}

func TestHealthChecker(t *testing.T) {
	setup := func(t *testing.T, check func(context.Context, target) error) (*healthChecker, chan struct{}, *clocktesting.FakePassiveClock) {
		t.Helper()
		woken := make(chan struct{}, 10)
		clk := clocktesting.NewFakePassiveClock(noon)
		h := newHealthChecker(clk, func(context.Context) { woken <- struct{}{} })
		h.check = check
		h.lookup = func(context.Context, string) error { return errors.New("no such name") }
		return h, woken, clk
	}
	one := target{url: "https://10.97.0.1:6443/healthz", host: "10.97.0.1"}

	t.Run("When asked first it should answer nothing, and wake us with the answer", func(t *testing.T) {
		g := NewWithT(t)
		failures := 3
		h, woken, _ := setup(t, func(context.Context, target) error {
			if failures--; failures >= 0 {
				return errors.New("connection refused")
			}
			return nil
		})
		g.Expect(h.Result(t.Context(), one)).To(BeNil())
		g.Eventually(woken).WithTimeout(time.Minute).Should(Receive())
		g.Expect(h.Result(t.Context(), one)).To(Equal(&health{host: "10.97.0.1"}))
	})
	t.Run("When the answer is fresh it should not ask again, and when it is old it should", func(t *testing.T) {
		g := NewWithT(t)
		asked := make(chan struct{}, 10)
		h, woken, clk := setup(t, func(context.Context, target) error { asked <- struct{}{}; return nil })
		h.Result(t.Context(), one)
		g.Eventually(woken).WithTimeout(time.Minute).Should(Receive())
		g.Eventually(asked).WithTimeout(time.Minute).Should(Receive())
		h.Result(t.Context(), one)
		g.Consistently(asked, "100ms").ShouldNot(Receive())
		clk.SetTime(noon.Add(checkFresh))
		h.Result(t.Context(), one)
		g.Eventually(asked).WithTimeout(time.Minute).Should(Receive())
		g.Consistently(woken, "100ms").ShouldNot(Receive(), "the same answer is no news")
	})
	t.Run("When the endpoint moves it should forget the old answer", func(t *testing.T) {
		g := NewWithT(t)
		h, woken, _ := setup(t, func(context.Context, target) error { return nil })
		h.Result(t.Context(), one)
		g.Eventually(woken).WithTimeout(time.Minute).Should(Receive())
		g.Expect(h.Result(t.Context(), target{url: "https://10.97.0.2:6443/healthz", host: "10.97.0.2"})).To(BeNil())
	})
	t.Run("When the host is a name it should be looked up", func(t *testing.T) {
		g := NewWithT(t)
		h, woken, _ := setup(t, func(context.Context, target) error { return nil })
		named := target{url: "https://api.example.com:6443/healthz", host: "api.example.com"}
		h.Result(t.Context(), named)
		g.Eventually(woken).WithTimeout(time.Minute).Should(Receive())
		g.Expect(h.Result(t.Context(), named).dns).To(MatchError("no such name"))
	})
}

// otherRoots is the certificate of an authority that signed nothing.
var otherRoots = func() string {
	root := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "other"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	key, err := pki.NewKey(pki.ECDSA)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &root, &root, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}()
