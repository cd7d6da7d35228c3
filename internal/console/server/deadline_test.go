package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/world"
)

func TestTimes(t *testing.T) {
	t.Run("When a reader takes nothing of an answer it should not be held for ever", func(t *testing.T) {
		srv := (&Server{World: world.New(), Gate: &access.Own{}, Log: logr.Discard(), Clock: clock.RealClock{}}).http(t.Context())
		g := NewWithT(t)
		g.Expect(srv.WriteTimeout).To(Equal(time.Minute))
		g.Expect(srv.WriteTimeout).To(BeNumerically(">", placeTime+detailTime+srv.ReadHeaderTimeout), "or pages that take long would be cut off")
		g.Expect(heartbeat).To(BeNumerically("<", patience))
	})
}

func TestCrowd(t *testing.T) {
	t.Run("When too many strangers come from somewhere it should have them wait", func(t *testing.T) {
		g := NewWithT(t)
		h := (&Server{World: world.New(), Gate: crowded{}, Log: logr.Discard(), Clock: clock.RealClock{}}).Handler()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api/v1/me", nil))
		g.Expect(rec.Code).To(Equal(http.StatusTooManyRequests))
		g.Expect(rec.Header().Get("Retry-After")).To(Equal("1"))
		g.Expect(rec.Body.String()).To(ContainSubstring("unknown tokens"))
	})
}

// crowded is a gate before which too many strangers are.
type crowded struct{}

func (crowded) Viewer(*http.Request) (*access.Viewer, error) { return nil, access.ErrTooMany }
