package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestHook(t *testing.T) {
	server := httptest.NewServer(hookHandler("web-1"))
	defer server.Close()
	call := func(g Gomega, method, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := http.DefaultClient.Do(req)
		g.Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		g.Expect(err).NotTo(HaveOccurred())
		return resp.StatusCode, string(answer)
	}
	const ask = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":{"metadata":{"labels":{"refuse":"%s"}}}}}`
	t.Run("When an object asks to be refused it should be", func(t *testing.T) {
		g := NewWithT(t)
		_, answer := call(g, http.MethodPost, "/validate", strings.Replace(ask, "%s", "yes", 1))
		g.Expect(answer).To(MatchJSON(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":false,"status":{"message":"refused by web-1, as label refuse asks"}}}`))
	})
	t.Run("When it does not it should be allowed", func(t *testing.T) {
		g := NewWithT(t)
		_, answer := call(g, http.MethodPost, "/validate", strings.Replace(ask, "%s", "no", 1))
		g.Expect(answer).To(MatchJSON(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true}}`))
	})
	t.Run("When something else is sent it should say so", func(t *testing.T) {
		g := NewWithT(t)
		code, _ := call(g, http.MethodPost, "/validate", "{")
		g.Expect(code).To(Equal(http.StatusBadRequest))
	})
	t.Run("When the API is discovered and asked it should answer", func(t *testing.T) {
		g := NewWithT(t)
		_, answer := call(g, http.MethodGet, "/apis/greet.example.test/v1", "")
		g.Expect(answer).To(ContainSubstring(`"groupVersion":"greet.example.test/v1"`))
		_, answer = call(g, http.MethodGet, "/apis/greet.example.test/v1/hello", "")
		g.Expect(answer).To(Equal("Hello from web-1\n"))
	})
}
