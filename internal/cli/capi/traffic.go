package capi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/capigroup/translate"
)

// Request is one line of a file of recorded traffic, as JSON. Names are those of the standard view.
type Request struct {
	Method      string `json:"method"`
	Path        string `json:"path"` // with its query
	Accept      string `json:"accept,omitempty"`
	ContentType string `json:"contentType,omitempty"`
	Body        string `json:"body,omitempty"`
}

const (
	typeJSON     = "application/json"
	typeProtobuf = "application/vnd.kubernetes.protobuf"
	typeTable    = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	typeMetadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

	// maxBody is the largest body that is recorded or replayed: what an API server reads.
	maxBody = 3 << 20
	// maxTraffic is how many requests are replayed.
	maxTraffic = 1_000_000
)

// readTraffic reads a file of recorded traffic.
func readTraffic(r io.Reader) ([]Request, error) {
	var out []Request
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 2*maxBody)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		one := Request{}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if one.Method == "" || !strings.HasPrefix(one.Path, "/") {
			return nil, fmt.Errorf("line %d: method and path must be given, the path from its first slash", n)
		}
		if out = append(out, one); len(out) > maxTraffic {
			return nil, fmt.Errorf("line %d: more than %d requests; split the file", n, maxTraffic)
		}
	}
	return out, lines.Err()
}

// recorder writes requests to a file as they pass. Bodies are kept of Cluster API's own objects alone: others may be Secrets.
type recorder struct {
	next http.Handler

	mu  sync.Mutex
	out io.Writer
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one := Request{Method: r.Method, Path: r.URL.RequestURI(), Accept: strings.Join(r.Header.Values("Accept"), ","), ContentType: r.Header.Get("Content-Type")}
	parsed, err := translate.Parse(r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	if err == nil && parsed.Mapped() && r.Body != nil && r.Body != http.NoBody {
		body, readErr := io.ReadAll(io.LimitReader(r.Body, maxBody))
		rest := r.Body
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), rest), rest}
		if readErr == nil && len(body) < maxBody {
			one.Body = string(body)
		}
	}
	if line, err := json.Marshal(one); err == nil && (one.Body != "" || r.Method == http.MethodGet) {
		rec.mu.Lock()
		_, _ = rec.out.Write(append(line, '\n')) // a full disk must not stop the user's work
		rec.mu.Unlock()
	}
	rec.next.ServeHTTP(w, r)
}

// record puts a recorder in front of a handler, if a file is named.
func record(file string, next http.Handler) (http.Handler, io.Closer, error) {
	if file == "" {
		return next, io.NopCloser(nil), nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("--record: %w", err)
	}
	return &recorder{next: next, out: f}, f, nil
}

// generator makes requests from what a management cluster has.
type generator struct {
	view  *View
	scope string // "/namespaces/NAME", or empty for all
	limit int    // objects of each kind that are asked for by name
	write bool   // also writes, all of them dry runs
}

// generate lists what there is through the view, which the requests then compare with what is stored.
func (g *generator) generate(ctx context.Context) ([]Request, error) {
	out := []Request{
		{Method: "GET", Path: "/version"},
		{Method: "GET", Path: "/apis/" + translate.Standard},
		{Method: "GET", Path: "/openapi/v3/apis/" + translate.Standard + "/v1beta2"},
	}
	for _, group := range []string{translate.Standard, "infrastructure." + translate.Standard, "addons." + translate.Standard, "ipam." + translate.Standard} {
		for _, version := range []string{"v1beta1", "v1beta2"} {
			gv := group + "/" + version
			resources := &metav1.APIResourceList{}
			code, err := g.read(ctx, "/apis/"+translate.GroupVersion(gv), resources)
			if err != nil {
				return nil, err
			}
			if code == http.StatusNotFound {
				continue
			}
			out = append(out, Request{Method: "GET", Path: "/apis/" + gv})
			for i := range resources.APIResources {
				r := &resources.APIResources[i]
				if strings.Contains(r.Name, "/") {
					continue
				}
				more, err := g.resource(ctx, gv, r, resources.APIResources)
				if err != nil {
					return nil, err
				}
				out = append(out, more...)
			}
		}
	}
	for _, path := range []string{"/api/v1" + g.scope + "/events", "/api/v1" + g.scope + "/secrets", "/api/v1" + g.scope + "/configmaps",
		"/apis/apps/v1" + g.scope + "/deployments", "/apis/rbac.authorization.k8s.io/v1" + g.scope + "/roles"} {
		out = append(out, lists(path)...)
	}
	return out, nil
}

// lists are the ways in which clients ask for a collection.
func lists(path string) []Request {
	return []Request{
		{Method: "GET", Path: path, Accept: typeJSON},
		{Method: "GET", Path: path, Accept: typeTable},
		{Method: "GET", Path: path, Accept: typeMetadata},
		{Method: "GET", Path: path + "?limit=3", Accept: typeJSON},
		{Method: "GET", Path: path + "?watch=true&timeoutSeconds=1&resourceVersion=0", Accept: typeJSON},
	}
}

func (g *generator) resource(ctx context.Context, gv string, r *metav1.APIResource, all []metav1.APIResource) ([]Request, error) {
	scope := g.scope
	if !r.Namespaced {
		scope = ""
	}
	group, _, _ := strings.Cut(gv, "/")
	base := "/apis/" + gv
	out := append(lists(base+scope+"/"+r.Name),
		Request{Method: "GET", Path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + r.Name + "." + group},
		Request{Method: "GET", Path: base + scope + "/" + r.Name + "/no-such-object"})
	stored := &metav1.PartialObjectMetadataList{}
	code, err := g.read(ctx, fmt.Sprintf("/apis/%s%s/%s?limit=%d", translate.GroupVersion(gv), scope, r.Name, g.limit), stored)
	if err != nil || code != http.StatusOK {
		return out, err
	}
	has := func(sub string) bool {
		return slices.ContainsFunc(all, func(s metav1.APIResource) bool { return s.Name == r.Name+"/"+sub })
	}
	for i := range stored.Items {
		o := &stored.Items[i]
		path := base
		if r.Namespaced {
			path += "/namespaces/" + url.PathEscape(o.Namespace)
		}
		collection := path + "/" + r.Name
		path = collection + "/" + url.PathEscape(o.Name)
		out = append(out, Request{Method: "GET", Path: path, Accept: typeJSON}, Request{Method: "GET", Path: path + "?pretty=true", Accept: typeJSON})
		for _, sub := range []string{"status", "scale"} {
			if has(sub) {
				out = append(out, Request{Method: "GET", Path: path + "/" + sub, Accept: typeJSON})
			}
		}
		if g.write {
			out = append(out, writes(gv, r.Kind, path, o.Name)...)
		}
	}
	return out, nil
}

// writes are patches of every kind, and a deletion. They are dry runs: verify makes them so, here as in recorded traffic.
func writes(gv, kind, path, name string) []Request {
	owner := `{"apiVersion":"` + translate.Standard + `/v1beta2","kind":"Cluster","name":"verify","uid":"00000000-0000-0000-0000-000000000000"}`
	meta := `{"metadata":{"annotations":{"cluster.x-k8s.io/verify":"cluster.x-k8s.io/v1beta2"},"ownerReferences":[` + owner + `]}}`
	apply := `{"apiVersion":"` + gv + `","kind":"` + kind + `","metadata":{"name":"` + name + `","labels":{"cluster.x-k8s.io/verify":"yes"}}}`
	return []Request{
		{Method: "PATCH", Path: path, ContentType: "application/merge-patch+json", Body: meta},
		{Method: "PATCH", Path: path, ContentType: "application/json-patch+json", Body: `[{"op":"test","path":"/metadata/name","value":"` + name + `"},{"op":"add","path":"/metadata/ownerReferences","value":[` + owner + `]}]`},
		{Method: "PATCH", Path: path + "?fieldManager=hypershift-verify&force=true", ContentType: "application/apply-patch+yaml", Body: apply},
		{Method: "DELETE", Path: path, ContentType: typeJSON, Body: `{"apiVersion":"` + gv + `","kind":"DeleteOptions","propagationPolicy":"Background"}`},
	}
}

// read asks the management cluster itself for something small.
func (g *generator) read(ctx context.Context, path string, into any) (int, error) {
	code, body, err := g.view.get(ctx, path)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	if code == http.StatusOK {
		if err := json.Unmarshal(body, into); err != nil {
			return 0, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return code, nil
}
