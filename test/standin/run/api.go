package run

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

// resource is one kind of an aggregated API.
type resource struct {
	plural, kind string
	namespaced   bool
}

// resources are the kinds of each group that a control plane or its operators touch.
var resources = map[string][]resource{
	"apps.openshift.io":             {{"deploymentconfigs", "DeploymentConfig", true}},
	"authorization.openshift.io":    {{"rolebindingrestrictions", "RoleBindingRestriction", true}},
	"build.openshift.io":            {{"buildconfigs", "BuildConfig", true}, {"builds", "Build", true}},
	"image.openshift.io":            {{"imagestreams", "ImageStream", true}, {"images", "Image", false}},
	"project.openshift.io":          {{"projects", "Project", false}},
	"quota.openshift.io":            {{"appliedclusterresourcequotas", "AppliedClusterResourceQuota", true}, {"clusterresourcequotas", "ClusterResourceQuota", false}},
	"route.openshift.io":            {{"routes", "Route", true}},
	"security.openshift.io":         {{"rangeallocations", "RangeAllocation", false}, {"securitycontextconstraints", "SecurityContextConstraints", false}},
	"template.openshift.io":         {{"templates", "Template", true}},
	"oauth.openshift.io":            {{"oauthclients", "OAuthClient", false}, {"oauthaccesstokens", "OAuthAccessToken", false}},
	"user.openshift.io":             {{"users", "User", false}, {"groups", "Group", false}, {"identities", "Identity", false}},
	"packages.operators.coreos.com": {{"packagemanifests", "PackageManifest", true}},
}

// maxObject bounds an object that is sent to us.
const maxObject = 1 << 20

type object = map[string]any

// apiServer keeps objects of its groups in memory. A restart loses them, and whoever owns them makes them again.
type apiServer struct {
	groups []string

	mu      sync.Mutex
	version int
	objects map[string]object // by path
	changed chan struct{}
	log     []event
}

type event struct {
	version int
	path    string
	kind    string
	object  object
}

func (r *runner) api() http.Handler {
	if r.apiServer == nil {
		r.apiServer = &apiServer{groups: r.Groups, objects: map[string]object{}, changed: make(chan struct{}), version: 1}
	}
	return r.apiServer
}

// request is what a path asks for.
type request struct {
	group, namespace, name, sub string
	resource                    resource
}

// parse reads /apis/GROUP/v1/[namespaces/NS/]PLURAL[/NAME[/SUB]]. ok is false for what isn't of our groups.
func (a *apiServer) parse(path string) (req request, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 4 || parts[2] != "v1" || !slices.Contains(a.groups, parts[1]) {
		return req, false
	}
	req.group, parts = parts[1], parts[3:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		req.namespace, parts = parts[1], parts[2:]
	}
	for _, r := range resources[req.group] {
		if r.plural == parts[0] {
			req.resource = r
			if len(parts) > 1 {
				req.name = parts[1]
			}
			if len(parts) > 2 {
				req.sub = parts[2]
			}
			return req, true
		}
	}
	return req, false
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if doc := a.discovery(strings.TrimSuffix(r.URL.Path, "/")); doc != nil {
		answer(w, http.StatusOK, doc)
		return
	}
	if r.URL.Path == "/apis/oauth.openshift.io/v1/tokenreviews" {
		// The stand-in has no tokens, so none of them is good.
		answer(w, http.StatusCreated, object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": object{"authenticated": false}})
		return
	}
	req, ok := a.parse(r.URL.Path)
	if !ok {
		status(w, http.StatusNotFound, "NotFound", r.URL.Path+" isn't served")
		return
	}
	switch r.Method {
	case http.MethodGet:
		switch {
		case req.name != "":
			a.get(w, r)
		case r.URL.Query().Get("watch") != "":
			a.watch(w, r, req)
		default:
			a.list(w, r, req)
		}
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		a.write(w, r, req)
	case http.MethodDelete:
		a.remove(w, r.URL.Path)
	default:
		status(w, http.StatusMethodNotAllowed, "MethodNotAllowed", r.Method)
	}
}

// discovery answers the paths that say what there is; nil for any other.
func (a *apiServer) discovery(path string) object {
	group := func(name string) object {
		v := object{"groupVersion": name + "/v1", "version": "v1"}
		return object{"name": name, "versions": []object{v}, "preferredVersion": v}
	}
	if path == "/apis" {
		list := []object{}
		for _, g := range a.groups {
			list = append(list, group(g))
		}
		return object{"kind": "APIGroupList", "apiVersion": "v1", "groups": list}
	}
	for _, g := range a.groups {
		if path == "/apis/"+g {
			doc := group(g)
			doc["kind"], doc["apiVersion"] = "APIGroup", "v1"
			return doc
		}
		if path != "/apis/"+g+"/v1" {
			continue
		}
		list := []object{}
		for _, r := range resources[g] {
			list = append(list, object{"name": r.plural, "singularName": strings.ToLower(r.kind), "namespaced": r.namespaced, "kind": r.kind, "verbs": []string{"create", "delete", "get", "list", "patch", "update", "watch"}})
		}
		return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": g + "/v1", "resources": list}
	}
	return nil
}

// partial is an object as its request asks for it: whole, or only its metadata.
func partial(r *http.Request, o object) object {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return o
	}
	return object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]}
}

func (a *apiServer) get(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	a.mu.Lock()
	defer a.mu.Unlock()
	if o, ok := a.objects[path]; ok {
		answer(w, http.StatusOK, partial(r, o))
		return
	}
	status(w, http.StatusNotFound, "NotFound", path+" isn't there")
}

// collection is the path of the objects of a request; in all namespaces: of every one.
func (req request) matches(path string) bool {
	prefix := "/apis/" + req.group + "/v1/"
	if req.namespace != "" {
		prefix += "namespaces/" + req.namespace + "/"
	}
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && strings.Contains("/"+rest, "/"+req.resource.plural+"/")
}

func (a *apiServer) list(w http.ResponseWriter, r *http.Request, req request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []object{}
	for _, path := range slices.Sorted(maps.Keys(a.objects)) {
		if req.matches(path) {
			items = append(items, partial(r, a.objects[path]))
		}
	}
	list := object{"kind": req.resource.kind + "List", "apiVersion": req.group + "/v1", "metadata": object{"resourceVersion": strconv.Itoa(a.version)}, "items": items}
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		list["kind"], list["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	answer(w, http.StatusOK, list)
}

// write creates, replaces or patches an object. A patch is merged, which is what becomes of one that is applied by its only owner.
func (a *apiServer) write(w http.ResponseWriter, r *http.Request, req request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxObject))
	sent := object{}
	if err == nil {
		err = yaml.Unmarshal(raw, &sent)
	}
	if err != nil {
		status(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	metadata, _ := sent["metadata"].(object)
	if metadata == nil {
		metadata = object{}
		sent["metadata"] = metadata
	}
	path := r.URL.Path
	if req.name == "" {
		name, _ := metadata["name"].(string)
		path = strings.TrimSuffix(path, "/") + "/" + name
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	old, exists := a.objects[path]
	if r.Method == http.MethodPost && exists {
		status(w, http.StatusConflict, "AlreadyExists", path+" is there")
		return
	}
	if r.Method == http.MethodPatch {
		if !exists && r.Header.Get("Content-Type") != "application/apply-patch+yaml" {
			status(w, http.StatusNotFound, "NotFound", path+" isn't there")
			return
		}
		sent = merged(old, sent)
		metadata = sent["metadata"].(object)
	}
	if exists {
		before := old["metadata"].(object)
		metadata["uid"], metadata["creationTimestamp"], metadata["resourceVersion"] = before["uid"], before["creationTimestamp"], before["resourceVersion"]
		if same(old, sent) {
			answer(w, http.StatusOK, old)
			return
		}
	} else {
		metadata["uid"], metadata["creationTimestamp"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", a.version), time.Now().UTC().Format(time.RFC3339)
	}
	a.version++
	metadata["resourceVersion"] = strconv.Itoa(a.version)
	if req.namespace != "" {
		metadata["namespace"] = req.namespace
	}
	sent["apiVersion"], sent["kind"] = req.group+"/v1", req.resource.kind
	a.objects[path] = sent
	kind, code := "ADDED", http.StatusCreated
	if exists {
		kind, code = "MODIFIED", http.StatusOK
	}
	a.tell(event{a.version, path, kind, sent})
	answer(w, code, sent)
}

func same(a, b object) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

func merged(old, patch object) object {
	out := maps.Clone(old)
	if out == nil {
		out = object{}
	}
	for k, v := range patch {
		next, isMap := v.(object)
		if before, ok := out[k].(object); ok && isMap {
			out[k] = merged(before, next)
		} else if v == nil {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out
}

func (a *apiServer) remove(w http.ResponseWriter, path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.objects[path]
	if !ok {
		status(w, http.StatusNotFound, "NotFound", path+" isn't there")
		return
	}
	delete(a.objects, path)
	a.version++
	a.tell(event{a.version, path, "DELETED", o})
	answer(w, http.StatusOK, object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
}

// maxLog bounds the changes that a watch can still be told of.
const maxLog = 1000

func (a *apiServer) tell(e event) {
	a.log = append(a.log, e)
	if len(a.log) > maxLog {
		a.log = a.log[len(a.log)-maxLog:]
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

// watch tells of changes until the client goes or its time is up.
func (a *apiServer) watch(w http.ResponseWriter, r *http.Request, req request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil || seconds < 1 || seconds > 600 {
		seconds = 300
	}
	end := time.After(time.Duration(seconds) * time.Second)
	flusher, _ := w.(http.Flusher)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	encoder := json.NewEncoder(w)
	for {
		flusher.Flush()
		a.mu.Lock()
		changed := a.changed
		news := slices.DeleteFunc(slices.Clone(a.log), func(e event) bool { return e.version <= from || !req.matches(e.path) })
		a.mu.Unlock()
		for _, e := range news {
			if encoder.Encode(object{"type": e.kind, "object": partial(r, e.object)}) != nil {
				return
			}
			from = e.version
		}
		if len(news) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func answer(w http.ResponseWriter, code int, doc object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(doc)
}

func status(w http.ResponseWriter, code int, reason, message string) {
	answer(w, code, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
}

// oauthMetadata is what clients of the OAuth server ask at first.
func (r *runner) oauthMetadata(w http.ResponseWriter, req *http.Request) {
	issuer := "https://" + req.Host
	answer(w, http.StatusOK, object{"issuer": issuer, "authorization_endpoint": issuer + "/oauth/authorize", "token_endpoint": issuer + "/oauth/token"})
}
