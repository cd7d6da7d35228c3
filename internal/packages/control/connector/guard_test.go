package connector

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
)

func TestGuardOfLists(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("a", 600)) }))
	defer server.Close()
	limits := Limits{Request: DefaultLimits().Request, Watch: DefaultLimits().Watch, Body: 1000, List: 1000, Error: 1000, WatchRate: 1000}
	t.Run("When pages of a path are read at the same time and are too much it should refuse them, not end the process", func(t *testing.T) {
		g := NewWithT(t)
		c := &http.Client{Transport: newGuard(http.DefaultTransport, limits, clock.RealClock{})}
		var open []*http.Response
		for _, query := range []string{"", "?continue=a", "?continue=b"} {
			resp, err := c.Get(server.URL + "/api" + query)
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { resp.Body.Close() })
			open = append(open, resp) //nolint:bodyclose // because it is closed when the test ends
		}
		for _, resp := range open {
			_, _ = io.ReadAll(resp.Body) // some are refused
		}
		resp, err := c.Get(server.URL + "/api?continue=c")
		g.Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		g.Expect(err).To(HaveOccurred(), "nothing is left for the next page")
	})
	t.Run("When very many objects are read it should not remember each", func(t *testing.T) {
		g := NewWithT(t)
		guard := newGuard(http.DefaultTransport, limits, clock.RealClock{})
		for i := range maxLists + 100 {
			req := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/api/%d", i), nil)
			guard.bound(req, &http.Response{StatusCode: http.StatusOK}, false)
		}
		g.Expect(len(guard.lists)).To(BeNumerically("<=", maxLists))
	})
}
