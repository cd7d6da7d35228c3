package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestBodies(t *testing.T) {
	const configMaps = "/api/v1/namespaces/n/configmaps"
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	owned := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{"apiVersion":"` + viewGV + `","kind":"Cluster","name":"c","uid":"u"}]}`
	for name, tc := range map[string]struct {
		method, path, media, body string
		status                    int
		want                      string // what arrives; empty: nothing does
	}{
		"When YAML has a key twice and names no group it should go on as it is": {
			method: "PATCH", path: configMaps + "/a?fieldValidation=Strict", media: "application/apply-patch+yaml", body: "data:\n  foo: a\n  foo: b\n", status: 200, want: "data:\n  foo: a\n  foo: b\n"},
		"When YAML has a key twice, names a group and is to be strict it should be refused with the line": {
			method: "PATCH", path: machinesPath + "/m?fieldValidation=Strict", media: "application/apply-patch+yaml", body: "apiVersion: " + viewGV + "\nspec:\n  foo: a\n  foo: b\n", status: 400},
		"When YAML names a group it should be renamed": {
			method: "PATCH", path: machinesPath + "/m", media: "application/apply-patch+yaml", body: "apiVersion: " + viewGV + "\n", status: 200, want: `{"apiVersion":"` + storedGV + `"}`},
		"When YAML hides a group in an escape it should be renamed all the same": {
			method: "PATCH", path: machinesPath + "/m", media: "application/apply-patch+yaml", body: "apiVersion: \"\\x63luster.x-k8s.io/v1beta2\"\n", status: 200, want: `{"apiVersion":"` + storedGV + `"}`},
		"When a small body is nested too deep to be translated and names a group it should be refused": {
			method: "POST", path: configMaps, media: typeJSON, body: owned + `,"x":` + deep + `}`, status: 400},
		"When a patch has a value that is nested too deep and names a group it should be refused": {
			method: "PATCH", path: configMaps + "/a", media: "application/json-patch+json", body: `[{"op":"add","path":"/metadata","value":{"name":"` + viewGV + `","x":` + deep + `}}]`, status: 400},
		"When a body is nested too deep and names no group it should go on as it is": {
			method: "POST", path: configMaps, media: typeJSON, body: `{"x":` + deep + `}`, status: 200, want: `{"x":` + deep + `}`},
		"When a body is no JSON and names no group it should go on, as the API server says what is wrong": {
			method: "POST", path: configMaps, media: typeJSON, body: `{"x":`, status: 200, want: `{"x":`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := make(chan string, 1)
			front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				got <- string(raw)
				w.Header().Set("Content-Type", typeJSON)
				_, _ = w.Write([]byte(`{}`))
			})
			resp, body := ask(t, tc.method, front.URL+tc.path, tc.media, tc.body)
			g.Expect(resp.StatusCode).To(Equal(tc.status), body)
			if tc.want == "" {
				g.Expect(got).To(BeEmpty())
				return
			}
			g.Expect(<-got).To(Equal(tc.want))
		})
	}
}

func TestHiddenTogether(t *testing.T) {
	accepted := make(chan string, 1)
	front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		accepted <- r.Method + " " + r.Header.Get("Accept")
		w.Header().Set("Content-Type", typeJSON)
		_, _ = w.Write([]byte(`{"kind":"List","items":[]}`))
	})
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	t.Run("When definitions are asked for in protobuf alone it should be refused, as nothing can be hidden in that", func(t *testing.T) {
		resp, _ := ask(t, "GET", front.URL+definitions, "", "", "Accept", typeProtobuf)
		NewWithT(t).Expect(resp.StatusCode).To(Equal(http.StatusNotAcceptable))
		NewWithT(t).Expect(accepted).To(BeEmpty())
	})
	t.Run("When JSON is taken, too, it should be asked for", func(t *testing.T) {
		resp, _ := ask(t, "GET", front.URL+definitions, "", "", "Accept", typeProtobuf+","+typeJSON)
		NewWithT(t).Expect(resp.StatusCode).To(Equal(http.StatusOK))
		NewWithT(t).Expect(<-accepted).To(Equal("GET " + typeJSON))
	})
	t.Run("When all definitions are deleted together it should be refused, as some are hidden", func(t *testing.T) {
		resp, _ := ask(t, "DELETE", front.URL+definitions, "", "")
		NewWithT(t).Expect(resp.StatusCode).To(Equal(http.StatusMethodNotAllowed))
		NewWithT(t).Expect(accepted).To(BeEmpty())
	})
}

func TestStreamsOfOthers(t *testing.T) {
	t.Run("When a service behind the API server sends events it should pass on each as it comes", func(t *testing.T) {
		g := NewWithT(t)
		release := make(chan struct{})
		front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: 1\n\n"))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
		})
		defer close(release)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+"/api/v1/namespaces/n/services/s/proxy/events", nil)
		g.Expect(err).NotTo(HaveOccurred())
		first := make(chan string, 1)
		go func() {
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				first <- err.Error()
				return
			}
			defer resp.Body.Close()
			buf := make([]byte, 9)
			n, _ := io.ReadFull(resp.Body, buf)
			first <- string(buf[:n])
		}()
		g.Eventually(first).Should(Receive(Equal("data: 1\n\n")))
	})
}
