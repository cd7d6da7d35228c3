package capi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/capigroup/translate"
)

func TestVerify(t *testing.T) {
	env, private, _ := management(t)
	t.Run("When everything is translated as it should be it should say so, and change nothing", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		g.Expect(call(t.Context(), t, env, &out, "verify", "-o", "json")).To(Succeed(), "%s", &out)
		report := Report{}
		g.Expect(json.Unmarshal(out.Bytes(), &report)).To(Succeed())
		g.Expect(report.Requests).To(BeNumerically(">", 80))
		g.Expect(report.Names).To(BeNumerically(">", 30))
		g.Expect(report.Equal + report.Names).To(Equal(report.Requests))
		g.Expect(report.Differences).To(BeEmpty())
		var text bytes.Buffer
		g.Expect(call(t.Context(), t, env, &text, "verify", "--limit", "1", "--writes=false")).To(Succeed())
		g.Expect(text.String()).To(MatchRegexp(`^\d+ requests both ways: \d+ answers equal byte by byte, \d+ but for \d+ names of groups, 0 different; 0 skipped\n$`))
		server, _ := viewOf(t, env.Config)
		resp, body := get(t, server.URL+"/apis/cluster.x-k8s.io/v1beta2/namespaces/"+private+"/clusters/of-"+private)
		g.Expect(resp.StatusCode).To(Equal(200))
		g.Expect(body).NotTo(ContainSubstring("verify"), "writes are dry runs")
	})
	t.Run("When traffic was recorded it should replay it without changing anything", func(t *testing.T) {
		g := NewWithT(t)
		_, view := viewOf(t, env.Config)
		file := filepath.Join(t.TempDir(), "traffic.jsonl")
		handler, recorded, err := record(file, view)
		g.Expect(err).NotTo(HaveOccurred())
		server := httptest.NewServer(handler)
		defer server.Close()
		base := server.URL + "/apis/cluster.x-k8s.io/v1beta2/namespaces/" + private + "/clusters"
		get(t, base)
		get(t, base+"?watch=1&timeoutSeconds=1")
		send := func(method, path, media, body string) {
			req, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
			g.Expect(err).NotTo(HaveOccurred())
			req.Header.Set("Content-Type", media)
			resp, err := http.DefaultClient.Do(req)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(resp.Body.Close()).To(Succeed())
			g.Expect(resp.StatusCode).To(BeNumerically("<", 300))
		}
		send("PATCH", base+"/of-"+private, "application/merge-patch+json", `{"metadata":{"annotations":{"recorded":"yes"}}}`)
		send("POST", server.URL+"/api/v1/namespaces/"+private+"/secrets", "application/json", `{"metadata":{"name":"s"},"stringData":{"password":"geheim"}}`)
		g.Expect(recorded.Close()).To(Succeed())
		raw, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Count(string(raw), "\n")).To(Equal(3))
		g.Expect(string(raw)).NotTo(ContainSubstring("geheim"))
		var out bytes.Buffer
		g.Expect(call(t.Context(), t, env, &out, "verify", "--traffic", file)).To(Succeed(), "%s", &out)
		g.Expect(out.String()).To(HavePrefix("3 requests both ways: "))
	})
	t.Run("When a recorded deletion can't be a dry run it should be skipped, and delete nothing", func(t *testing.T) {
		g := NewWithT(t)
		path := "/apis/cluster.x-k8s.io/v1beta2/namespaces/" + private + "/clusters/of-" + private
		var lines []byte
		for _, one := range []Request{
			{Method: "DELETE", Path: path, ContentType: "application/yaml", Body: "propagationPolicy: Orphan\n"},
			{Method: "DELETE", Path: path, ContentType: "application/json", Body: "null"},
			{Method: "DELETE", Path: path, ContentType: "application/json", Body: `{"dryRun":[],"propagationPolicy":"Background"}`},
			{Method: "DELETE", Path: path},
		} {
			line, err := json.Marshal(one)
			g.Expect(err).NotTo(HaveOccurred())
			lines = append(append(lines, line...), '\n')
		}
		file := filepath.Join(t.TempDir(), "traffic.jsonl")
		g.Expect(os.WriteFile(file, lines, 0o600)).To(Succeed())
		var out bytes.Buffer
		g.Expect(call(t.Context(), t, env, &out, "verify", "--traffic", file)).To(Succeed(), "%s", &out)
		g.Expect(out.String()).To(And(HavePrefix("2 requests both ways: "), HaveSuffix("; 2 skipped\n")))
		server, _ := viewOf(t, env.Config)
		resp, body := get(t, server.URL+path)
		g.Expect(resp.StatusCode).To(Equal(200), "it was deleted")
		g.Expect(body).NotTo(ContainSubstring("deletionTimestamp"))
	})
	t.Run("When the file or a number is wrong it should say where", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "traffic.jsonl")
		g.Expect(os.WriteFile(file, []byte("{\"method\":\"GET\",\"path\":\"/version\"}\n\n{\"method\":\"GET\",\"path\":\"version\"}\n"), 0o600)).To(Succeed())
		g.Expect(call(t.Context(), t, env, io.Discard, "verify", "--traffic", file)).To(MatchError(ContainSubstring("line 3: method and path must be given")))
		g.Expect(call(t.Context(), t, env, io.Discard, "verify", "--traffic", file+".none")).To(MatchError(ContainSubstring("--traffic: open")))
		g.Expect(call(t.Context(), t, env, io.Discard, "verify", "--limit", "-1")).To(MatchError(ContainSubstring("--limit -1")))
	})
	t.Run("When the proxy gets something wrong it should name the place and end with 2", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "traffic.jsonl")
		g.Expect(os.WriteFile(file, []byte(`{"method":"GET","path":"/apis/cluster.x-k8s.io/v1beta2/namespaces/`+private+`/clusters/of-`+private+`"}`), 0o600)).To(Succeed())
		_, view := viewOf(t, env.Config)
		requests, err := (&verifyOptions{traffic: file}).requests(t.Context(), view)
		g.Expect(err).NotTo(HaveOccurred())
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Authorization")
			answer := httptest.NewRecorder()
			view.translated.ServeHTTP(answer, r)
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			_, _ = io.WriteString(w, strings.Replace(answer.Body.String(), `"name":"of-`, `"name":"on-`, 1))
		}))
		defer front.Close()
		v := &verifier{view: view, address: front.URL}
		g.Expect(v.all(t.Context(), requests)).To(Succeed())
		g.Expect(v.report.Different).To(Equal(1))
		g.Expect(v.report.Differences[0].Check).To(Equal("bytes"))
		var text bytes.Buffer
		g.Expect(v.report.print(&text, "")).To(Succeed())
		g.Expect(text.String()).To(ContainSubstring("METHOD"))
		var exit *ExitError
		g.Expect(errors.As(error(&ExitError{Code: ExitDifferent}), &exit)).To(BeTrue())
	})
}

func TestCompare(t *testing.T) {
	r, err := translate.Parse("GET", "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines/m", "")
	if err != nil {
		t.Fatal(err)
	}
	const stored = `{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","metadata":{"labels":{"a":"cluster.hypershift.openshift.io"},"finalizers":["machine.cluster.x-k8s.io"]},"spec":{"infrastructureRef":{"apiGroup":"infrastructure.cluster.hypershift.openshift.io"},"x":1e3}}`
	right, err := translate.Bytes(r.Answer(false), nil, []byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	back := func(raw []byte) ([]byte, error) { return translate.Bytes(r.Answer(false), nil, raw) }
	for name, tc := range map[string]struct{ from, to, check string }{
		"When the answer is right it should find nothing":                {"", "", ""},
		"When a number is spelt differently it should find that":         {"1e3", "1000", "bytes"},
		"When the end is missing it should find that":                    {"}}", "}", "length"},
		"When a label was translated it should find that":                {`"a":"cluster.hypershift.openshift.io"`, `"a":"cluster.x-k8s.io"`, "translated in the wrong place"},
		"When a finalizer was translated it should find that":            {`machine.cluster.x-k8s.io`, `machine.cluster.hypershift.openshift.io`, "translated in the wrong place"},
		"When a reference was not translated it should find that":        {`infrastructure.cluster.x-k8s.io`, `infrastructure.cluster.hypershift.openshift.io`, "way back"},
		"When a group was translated to another one it should find that": {`infrastructure.cluster.x-k8s.io`, `bootstrap.cluster.x-k8s.io`, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := compare([]byte(stored), []byte(strings.Replace(string(right), tc.from, tc.to, 1)), true, back)
			if strings.HasPrefix(tc.check, "translated") {
				g.Expect(got.check).To(BeElementOf(tc.check, "way back"))
				g.Expect(compareValues([]byte(stored), []byte(strings.Replace(string(right), tc.from, tc.to, 1)), true).check).To(Equal(tc.check))
				return
			}
			g.Expect(got.check).To(Equal(tc.check))
			if tc.check == "" {
				g.Expect(got.names).To(Equal(2))
			}
		})
	}
	NewWithT(t).Expect(compareValues([]byte(stored), []byte(stored), true).check).To(Equal("not translated"))
}
