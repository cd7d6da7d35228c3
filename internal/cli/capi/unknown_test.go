package capi

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/capigroup/translate"
)

// TestStorageUnknown is about namespaces of which the management cluster doesn't say how they store objects.
func TestStorageUnknown(t *testing.T) {
	for name, status := range map[string]int{
		"When the user may not list clusters it should write nothing anywhere":       http.StatusForbidden,
		"When the API server has too many requests it should write nothing anywhere": http.StatusTooManyRequests,
		"When the API server fails it should write nothing anywhere":                 http.StatusInternalServerError,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			back := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.URL.Path == "/apis/"+translate.Private:
				case strings.HasSuffix(r.URL.Path, "/clusters"):
					w.WriteHeader(status)
				case r.Method != http.MethodGet:
					t.Errorf("%s %s reached the management cluster", r.Method, r.URL.Path)
				}
				_, _ = io.WriteString(w, "{}")
			}))
			back.EnableHTTP2 = true
			back.StartTLS()
			t.Cleanup(back.Close)
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: back.Certificate().Raw})
			upstream, err := Upstream(&rest.Config{Host: back.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
			g.Expect(err).NotTo(HaveOccurred())
			view, err := NewView(t.Context(), upstream, clock.RealClock{})
			g.Expect(err).NotTo(HaveOccurred())
			answer := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines", strings.NewReader(`{}`))
			r.Header.Set("Content-Type", "application/json")
			view.ServeHTTP(answer, r)
			g.Expect(answer.Code).To(Equal(http.StatusServiceUnavailable))
			g.Expect(answer.Body.String()).To(ContainSubstring("finding out how namespace n stores objects of Cluster API"))
		})
	}
}
