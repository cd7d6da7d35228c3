package issuers

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// issuer is a server, and the question that trusts it.
func issuer(t *testing.T, handler http.HandlerFunc) Question {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	return Question{Name: "idp", Issuer: s.URL, ClientID: "me", ClientSecret: "hush", CA: pemOf(s.Certificate())}
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

var here = &Client{Dial: (&net.Dialer{}).DialContext}

const document = `{"issuer":"x","authorization_endpoint":"https://idp/authorize","token_endpoint":"https://idp/token","userinfo_endpoint":"https://idp/me"}`

func TestURLs(t *testing.T) {
	for name, tc := range map[string]struct {
		issuer http.HandlerFunc
		change func(*Question)
		want   URLs
		says   string
	}{
		"When the issuer answers it should be its endpoints": {issuer: answers(200, document), want: URLs{"https://idp/authorize", "https://idp/token", "https://idp/me"}},
		"When there is no userinfo endpoint it should be left out": {issuer: answers(200, `{"authorization_endpoint":"https://idp/a?b=c","token_endpoint":"https://idp/t"}`),
			want: URLs{"https://idp/a?b=c", "https://idp/t", ""}},
		"When the issuer has a path and a slash it should be asked below it": {issuer: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/realms/a/.well-known/openid-configuration" {
				answers(200, document)(w, r)
				return
			}
			w.WriteHeader(http.StatusNotFound)
		}, change: func(q *Question) { q.Issuer += "/realms/a/" }, want: URLs{"https://idp/authorize", "https://idp/token", "https://idp/me"}},
		"When it answers with an error it should tell the status and nothing of the text": {issuer: answers(503, "secret text"), says: "it answered 503"},
		"When it answers with a page it should say what is wanted":                        {issuer: answers(200, "<html>"), says: "no discovery document"},
		"When an endpoint is missing it should be named":                                  {issuer: answers(200, `{"authorization_endpoint":"https://idp/a"}`), says: "token_endpoint of its discovery document is missing"},
		"When an endpoint is not https it should be refused":                              {issuer: answers(200, strings.ReplaceAll(document, "https://idp/token", "http://idp/token")), says: "token_endpoint of its discovery document must be a URL https"},
		"When an endpoint has a fragment it should be refused":                            {issuer: answers(200, strings.ReplaceAll(document, "/me", "/me#x")), says: "userinfo_endpoint of its discovery document must be"},
		"When an endpoint is very long it should be refused":                              {issuer: answers(200, strings.ReplaceAll(document, "/me", "/"+strings.Repeat("m", maxURL))), says: "userinfo_endpoint of its discovery document is longer"},
		"When the answer never ends it should stop reading":                               {issuer: answers(200, strings.Repeat(" ", maxAnswer+10)), says: "more than 262144 bytes"},
		"When it redirects for ever it should stop": {issuer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, says: "redirects more than 3 times"},
		"When it redirects to http it should stop": {issuer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		}, says: "redirects to a URL that is not https"},
		"When nobody vouches for its certificate it should say what to do":  {issuer: answers(200, document), change: func(q *Question) { q.CA = nil }, says: "signed by an unknown authority: put that into the ConfigMap that openID.ca names"},
		"When its authority is no certificate it should say so":             {issuer: answers(200, document), change: func(q *Question) { q.CA = []byte("x") }, says: "holds no certificate"},
		"When the issuer is not https it should say what it must be":        {issuer: answers(200, document), change: func(q *Question) { q.Issuer = "http://idp" }, says: "the issuer must be a URL https://"},
		"When nothing listens it should say so without addresses and ports": {issuer: answers(200, document), change: func(q *Question) { q.Issuer = "https://127.0.0.1:1" }, says: "can't be reached from the network of the hosted cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			q := issuer(t, tc.issuer)
			if tc.change != nil {
				tc.change(&q)
			}
			got, err := here.URLs(t.Context(), q)
			if tc.says != "" {
				g.Expect(told(q, err)).To(MatchError(And(HavePrefix(fmt.Sprintf("asking issuer %q: ", q.Issuer)), ContainSubstring(tc.says))))
				g.Expect(told(q, err).Error()).NotTo(ContainSubstring("secret text"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
	for name, after := range map[string]func(*http.Request){
		"When a caller ends it should end":                                     func(r *http.Request) { <-r.Context().Done() },
		"When the answer comes as its caller ends it should be taken for none": func(*http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for range 20 { // net/http gives such an answer now and then
				ctx, cancel := context.WithCancel(t.Context())
				q := issuer(t, func(_ http.ResponseWriter, r *http.Request) {
					cancel()
					after(r)
				})
				_, err := here.URLs(ctx, q)
				g.Expect(err).To(MatchError(context.Canceled))
			}
		})
	}
}

func TestPassword(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   bool
	}{
		"When it refuses the user it should be yes":   {answers(400, `{"error":"invalid_grant"}`), true},
		"When it takes the user it should be yes":     {answers(200, `{"access_token":"x"}`), true},
		"When it refuses the way it should be no":     {answers(400, `{"error":"unsupported_grant_type"}`), false},
		"When it answers with a page it should be no": {answers(200, "<html>"), false},
		"When it sends on it should be no, and nobody get the secret": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			asked := 0
			q := issuer(t, func(w http.ResponseWriter, r *http.Request) {
				asked++
				if r.ParseForm() != nil || r.PostForm.Encode() != "client_id=me&client_secret=hush&grant_type=password&password=test&scope=openid&username=test" {
					t.Errorf("asked with %v", r.PostForm)
				}
				tc.answer(w, r)
			})
			got, err := here.Password(t.Context(), q.Issuer+"/token", q)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
			g.Expect(asked).To(Equal(1))
		})
	}
}
