package configoperator

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

func TestAwaitAPI(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || asked.Add(1) < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	t.Run("When the API becomes ready it should go on", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(awaitAPI(t.Context(), &rest.Config{Host: server.URL}, clock.RealClock{}, time.Hour)).To(Succeed())
		g.Expect(asked.Load()).To(BeEquivalentTo(3))
	})
	t.Run("When the API does not become ready it should go on all the same", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(awaitAPI(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, clock.RealClock{}, time.Millisecond)).To(Succeed())
	})
}
