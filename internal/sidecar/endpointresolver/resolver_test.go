package endpointresolver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

type api struct {
	asked  string
	answer string
	err    error
}

func (a *api) Get(_ context.Context, path string, out any) error {
	a.asked = path
	if a.err != nil {
		return a.err
	}
	return json.Unmarshal([]byte(a.answer), out)
}

const pods = `{"items": [
 {"metadata": {"name": "b"}, "status": {"podIP": "10.0.0.2", "conditions": [{"type": "Ready", "status": "True"}]}},
 {"metadata": {"name": "a"}, "status": {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}},
 {"metadata": {"name": "c"}, "status": {"podIP": "10.0.0.3", "conditions": [{"type": "Ready", "status": "False"}]}},
 {"metadata": {"name": "d", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"podIP": "10.0.0.4", "conditions": [{"type": "Ready", "status": "True"}]}}]}`

func TestHandler(t *testing.T) {
	for name, tc := range map[string]struct {
		method, body string
		api          api
		code         int
		want         string
	}{
		"When pods are ready it should tell their addresses in order": {body: `{"selector": {"app": "web"}}`, api: api{answer: pods}, code: 200, want: `{"pods":[{"name":"a","ip":"10.0.0.1"},{"name":"b","ip":"10.0.0.2"}]}`},
		"When none is it should say so":                               {body: `{"selector": {"app": "web"}}`, api: api{answer: `{}`}, code: 404},
		"When it is asked in another way it should say how":           {method: "GET", code: 405},
		"When the body is nonsense it should say what it should be":   {body: "x", code: 400},
		"When there is no selector it should not tell of all pods":    {body: `{"selector": {}}`, code: 400},
		"When a label is none it should be refused":                   {body: `{"selector": {"app": "a,b in (c)"}}`, code: 400},
		"When the body is too long it should be refused":              {body: `{"selector": {"app": "` + strings.Repeat("x", maxQuestion) + `"}}`, code: 400},
		"When pods can't be listed it should not say why":             {body: `{"selector": {"app": "web"}}`, api: api{err: errors.New("secret")}, code: 500, want: "the pods can't be listed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			method := tc.method
			if method == "" {
				method = http.MethodPost
			}
			w := httptest.NewRecorder()
			Handler(&tc.api, "ns").ServeHTTP(w, httptest.NewRequest(method, Path, strings.NewReader(tc.body)))
			g.Expect(w.Code).To(Equal(tc.code), w.Body.String())
			if tc.want != "" {
				g.Expect(strings.TrimSpace(w.Body.String())).To(Equal(tc.want))
			}
			if tc.code == http.StatusOK {
				g.Expect(tc.api.asked).To(Equal("/api/v1/namespaces/ns/pods?labelSelector=app%3Dweb&limit=500"))
			}
		})
	}
}
