package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

func TestHandler(t *testing.T) {
	server := httptest.NewServer(handler("web-1", "2.0.0"))
	defer server.Close()
	for name, c := range map[string]struct {
		path, want string
		code       int
	}{
		"When asked it should say who it is":             {"/", "Hello from web-1, version 2.0.0\n", http.StatusOK},
		"When probed it should be healthy":               {"/healthz", "ok\n", http.StatusOK},
		"When asked for something else it has no answer": {"/etc/passwd", "404 page not found\n", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			resp, err := http.Get(server.URL + c.path)
			g.Expect(err).NotTo(HaveOccurred())
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(resp.StatusCode).To(Equal(c.code))
			g.Expect(string(body)).To(Equal(c.want))
		})
	}
}

func TestRun(t *testing.T) {
	server := httptest.NewServer(handler("web-1", "2.0.0"))
	defer server.Close()
	t.Run("When told to get it should print the answer", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		g.Expect(get(t.Context(), server.URL+"/", &out)).To(Succeed())
		g.Expect(out.String()).To(Equal("Hello from web-1, version 2.0.0\n"))
		g.Expect(get(t.Context(), server.URL+"/none", &out)).To(MatchError(ContainSubstring("status 404")))
	})
	t.Run("When it polls it should count what fails", func(t *testing.T) {
		g := NewWithT(t)
		asked := 0
		ctx, cancel := context.WithCancel(t.Context())
		shaky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			switch asked++; asked {
			case 2:
				w.WriteHeader(http.StatusServiceUnavailable)
			case 3:
				cancel()
			}
		}))
		defer shaky.Close()
		var out bytes.Buffer
		g.Expect(poll(ctx, shaky.URL, &out)).To(Succeed())
		g.Expect(out.String()).To(MatchRegexp(`failed: asking .*: status 503\n3 asked, 1 failed\n$`))
	})
	t.Run("When told something else it should say how it is used", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(run(t.Context(), []string{"sh"})).To(MatchError(ContainSubstring("usage")))
	})
}
