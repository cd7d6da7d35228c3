package responses

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

func TestLimit(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(strings.Repeat("x", 1<<20))
		for range len(r.URL.Query().Get("chunks")) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL}
	Limit(cfg, 3<<20)
	hc, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	read := func(t *testing.T, query string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	t.Run("When an answer is within the limit it should be read", func(t *testing.T) {
		NewWithT(t).Expect(read(t, "chunks=cc")).To(Succeed())
	})
	t.Run("When an answer is larger than allowed it should stop reading", func(t *testing.T) {
		NewWithT(t).Expect(read(t, "chunks=cccccccc")).To(MatchError(ErrTooLarge))
	})
	t.Run("When the request is a watch it should not count", func(t *testing.T) {
		NewWithT(t).Expect(read(t, "watch=true&chunks=cccccccc")).To(Succeed())
	})
}
