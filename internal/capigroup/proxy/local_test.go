package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestLocal(t *testing.T) {
	reached := 0
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ })
	try := func(host string, headers ...string) *httptest.ResponseRecorder {
		reached = 0
		r := httptest.NewRequest(http.MethodPost, "/api/v1/namespaces/n/configmaps", strings.NewReader("{}"))
		r.Host = host
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		Local(next).ServeHTTP(w, r)
		return w
	}
	for name, headers := range map[string][]string{
		"a page of another site":                     {"Origin", "https://evil.example"},
		"a page of another site that looks alike":    {"Origin", "https://localhost.evil.example"},
		"a page without an origin, as of a file":     {"Origin", "null"},
		"an empty origin":                            {"Origin", ""},
		"what is no origin":                          {"Origin", "http://[::1"},
		"two origins":                                {"Origin", "http://localhost:8001", "Origin", "https://evil.example"},
		"a picture or form of another site":          {"Sec-Fetch-Site", "cross-site"},
		"a picture or form of another port":          {"Sec-Fetch-Site", "same-site"},
		"another site, in capitals":                  {"Sec-Fetch-Site", "Cross-Site"},
		"a page of another port of this machine":     {"Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"},
		"a page of another site that says otherwise": {"Origin", "https://evil.example", "Sec-Fetch-Site", "same-origin"},
	} {
		t.Run("When "+name+" asks it should be refused", func(t *testing.T) {
			g := NewWithT(t)
			w := try("127.0.0.1:8001", headers...)
			g.Expect(w.Code).To(Equal(http.StatusForbidden))
			g.Expect(reached).To(BeZero())
			g.Expect(w.Header()).NotTo(HaveKey("Access-Control-Allow-Origin"))
			expectStatus(g, w.Body.String(), "Forbidden", http.StatusForbidden)
			g.Expect(w.Body.String()).To(ContainSubstring("use kubectl"))
		})
	}
	t.Run("When a name that is not this machine's leads here it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		w := try("evil.example:8001")
		g.Expect(w.Code).To(Equal(http.StatusForbidden))
		g.Expect(reached).To(BeZero())
		expectStatus(g, w.Body.String(), "Forbidden", http.StatusForbidden)
	})
	for name, headers := range map[string][]string{
		"an API client":                           nil,
		"somebody who types the address":          {"Sec-Fetch-Site", "none"},
		"a page of the proxy itself":              {"Origin", "http://127.0.0.1:8001", "Sec-Fetch-Site", "same-origin"},
		"a page of the proxy by another name":     {"Origin", "http://localhost:8001"},
		"a page of the proxy by its IPv6 address": {"Origin", "http://[::1]:8001"},
	} {
		t.Run("When "+name+" asks it should be answered", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(try("127.0.0.1:8001", headers...).Code).To(Equal(http.StatusOK))
			g.Expect(reached).To(Equal(1))
		})
	}
}

func TestPagesInPods(t *testing.T) {
	t.Run("When a program in a pod says where it comes from it should be served as before: no browser is there", func(t *testing.T) {
		g := NewWithT(t)
		front, _ := apiServer(t, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, "{}") })
		resp, _ := ask(t, "GET", front.URL+"/version", "", "", "Origin", "https://console.example.com", "Sec-Fetch-Site", "cross-site")
		g.Expect(resp.StatusCode).To(Equal(http.StatusOK))
	})
}
