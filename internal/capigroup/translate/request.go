package translate

import (
	"errors"
	"net/url"
	"strings"
)

// Class is how a request's bodies are treated.
type Class uint8

const (
	// ClassTunnel is content that is not the API server's own: logs, exec, proxied services, metrics. It is never looked at.
	ClassTunnel Class = iota
	// ClassObject is requests about objects of one type.
	ClassObject
	// ClassDiscovery is lists of groups and of resources.
	ClassDiscovery
	// ClassOpenAPI is schemas.
	ClassOpenAPI
)

// ErrPath is what Parse returns, wrapped, for a path that two parsers could understand differently. Such a path could reach a group
// that σ keeps away from the client.
var ErrPath = errors.New("path of the request is ambiguous")

// Request is what a request to an API server is about. Names are those of the client's view.
type Request struct {
	Class Class
	// Path, escaped, and Query, raw, are those of the other view. What σ doesn't change is byte by byte what it was.
	Path, Query string

	Group, Version, Resource, Subresource, Namespace, Name string
	// Watch is a stream of events, List any other request about a whole collection.
	Watch, List bool
	// Theirs tells that the path names a group that is private in the client's view: what another owner of Cluster API keeps.
	Theirs bool
}

// Mapped tells whether the request is about a type whose group σ changes.
func (r *Request) Mapped() bool { return InDomain(r.Group) }

// OpenAPIv2 tells whether the request is for the one document that has all types.
func (r *Request) OpenAPIv2() bool {
	return r.Class == ClassOpenAPI && strings.TrimSuffix(r.Path, "/") == "/openapi/v2"
}

// Parse reads the method, the escaped path and the raw query of a request.
func Parse(method, path, query string) (Request, error) {
	r := Request{Path: path, Query: query}
	if len(path) == 0 || path[0] != '/' {
		return r, ErrPath
	}
	// Few requests have more than ten segments, and those are proxied.
	var buf [12]string
	seg := splitPath(buf[:0], path)
	switch {
	case seg[0] == "api" || seg[0] == "apis":
		if err := plain(seg); err != nil {
			return r, err
		}
		if err := r.parseAPI(method, seg); err != nil {
			return r, err
		}
	case seg[0] == "openapi":
		if err := plain(seg); err != nil {
			return r, err
		}
		r.Class = ClassOpenAPI
		if len(seg) >= 4 && seg[1] == "v3" && seg[2] == "apis" {
			if err := r.renameSegment(seg, 3, formGroup); err != nil {
				return r, err
			}
		}
	default:
		// Other paths are served by their exact name, or not at all. One that hides api, apis or openapi is refused.
		for _, s := range seg {
			plain, err := url.PathUnescape(s)
			if err != nil || plain == "." || plain == ".." || plain == "" && len(seg) > 1 {
				return r, ErrPath
			}
		}
		if first, err := url.PathUnescape(seg[0]); err != nil || first != seg[0] {
			return r, ErrPath
		}
	}
	return r, nil
}

// splitPath splits an escaped path at slashes; a slash at the end counts for nothing.
func splitPath(dst []string, path string) []string {
	path = strings.TrimSuffix(path[1:], "/")
	for {
		s, rest, more := strings.Cut(path, "/")
		dst = append(dst, s)
		if !more {
			return dst
		}
		path = rest
	}
}

// plain refuses what could be understood differently behind us: empty segments, dots, and slashes that are escaped. What follows
// a "proxy" segment is another server's business.
func plain(seg []string) error {
	for i, s := range seg {
		if s == "proxy" && seg[0] == "api" && (i == 4 && seg[2] == "nodes" || i == 6 && seg[2] == "namespaces") {
			return nil
		}
		if s == "" || s == "." || s == ".." {
			return ErrPath
		}
		if strings.IndexByte(s, '%') < 0 {
			continue
		}
		plain, err := url.PathUnescape(s)
		if err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\\") {
			return ErrPath
		}
	}
	return nil
}

// renameSegment puts the other view's name in place of segment i.
func (r *Request) renameSegment(seg []string, i int, f form) error {
	name, err := url.PathUnescape(seg[i])
	if err != nil {
		return ErrPath
	}
	to, changed, theirs := f.apply(nil, []byte(name))
	if !changed {
		return nil
	}
	r.Theirs = r.Theirs || !theirs // what is standard there is what the client calls private
	before := 0
	for _, s := range seg[:i] {
		before += 1 + len(s)
	}
	before++
	r.Path = r.Path[:before] + string(to) + r.Path[before+len(seg[i]):]
	seg[i] = string(to)
	return nil
}

func (r *Request) parseAPI(method string, seg []string) error {
	rest := seg[1:]
	if seg[0] == "apis" {
		if len(seg) == 1 {
			r.Class = ClassDiscovery
			return nil
		}
		r.Group = decoded(seg[1])
		if err := r.renameSegment(seg, 1, formGroup); err != nil {
			return err
		}
		rest = seg[2:]
	}
	if len(rest) <= 1 { // /api, /api/v1, /apis/group, /apis/group/version
		r.Class = ClassDiscovery
		if len(rest) == 1 {
			r.Version = decoded(rest[0])
		}
		return nil
	}
	r.Class, r.Version = ClassObject, decoded(rest[0])
	rest = rest[1:]
	if decoded(rest[0]) == "watch" {
		r.Watch = true
		rest = rest[1:]
	}
	if len(rest) > 1 && decoded(rest[0]) == "namespaces" {
		r.Namespace = decoded(rest[1])
		if len(rest) > 2 && !(len(rest) == 3 && (decoded(rest[2]) == "status" || decoded(rest[2]) == "finalize")) {
			rest = rest[2:]
		}
	}
	if len(rest) == 0 {
		return nil
	}
	r.Resource = decoded(rest[0])
	if len(rest) > 1 {
		r.Name = decoded(rest[1])
	}
	if len(rest) > 2 {
		r.Subresource = decoded(rest[2])
	}
	if f := nameForms[r.Group+"/"+r.Resource]; f != formNone && r.Name != "" {
		if err := r.renameSegment(seg, len(seg)-len(rest)+1, f); err != nil {
			return err
		}
	}
	r.classify(method)
	return nil
}

// decoded is a segment as the API server reads it; plain has checked that it can be read.
func decoded(segment string) string {
	if strings.IndexByte(segment, '%') < 0 {
		return segment
	}
	s, _ := url.PathUnescape(segment)
	return s
}

// nameForms are the types whose objects are named by a group.
var nameForms = map[string]form{"apiextensions.k8s.io/" + crds: formCRD, "apiregistration.k8s.io/apiservices": formAPIService}

// tunnels are subresources with content of others.
var tunnels = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true, "log": true}

func (r *Request) classify(method string) {
	if r.Group == "" && tunnels[r.Subresource] {
		r.Class = ClassTunnel
		return
	}
	read := method == "GET" || method == "HEAD"
	if r.Query != "" {
		// The API server heeds it where a list would be given, and answers a single object all the same.
		r.Watch = r.Watch || read && r.Name == "" && isWatch(r.Query)
		r.Query = r.selectors(r.Query)
	}
	r.List = !r.Watch && r.Name == "" && (read || method == "DELETE")
}

// isWatch reads parameter watch as the API server does, which takes all but 0 and false for true, however it is spelled.
func isWatch(query string) bool {
	values, _ := url.ParseQuery(query) // what can't be read is left out there, too
	watch, asked := values["watch"]
	return asked && watch[0] != "0" && !strings.EqualFold(watch[0], "false")
}

// selectors renames groups in field selectors of a query.
func (r *Request) selectors(query string) string {
	if !strings.Contains(query, "ieldSelector=") {
		return query
	}
	params := strings.Split(query, "&")
	changed := false
	for i, param := range params {
		raw, ok := strings.CutPrefix(param, "fieldSelector=")
		if !ok {
			continue
		}
		value, err := url.QueryUnescape(raw)
		if err != nil {
			continue
		}
		if to := fieldSelector(value, nameForms[r.Group+"/"+r.Resource]); to != value {
			params[i] = "fieldSelector=" + url.QueryEscape(to)
			changed = true
		}
	}
	if !changed {
		return query
	}
	return strings.Join(params, "&")
}

// fieldSelector renames the values of fields that hold a group/version, and of metadata.name if named says how it holds a group.
func fieldSelector(selector string, named form) string {
	terms := splitTerms(selector)
	changed := false
	for i, term := range terms {
		at, width := operator(term)
		if at < 0 {
			continue
		}
		f := formNone
		switch term[:at] {
		case "involvedObject.apiVersion", "regarding.apiVersion", "related.apiVersion":
			f = formGV
		case "metadata.name":
			f = named
		}
		// No group has a character that would have to be escaped.
		if to, ok, _ := f.apply(nil, []byte(term[at+width:])); ok {
			terms[i] = term[:at+width] + string(to)
			changed = true
		}
	}
	if !changed {
		return selector
	}
	return strings.Join(terms, ",")
}

// splitTerms splits at commas that aren't escaped.
func splitTerms(s string) (terms []string) {
	start := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case ',':
			terms = append(terms, s[start:i])
			start = i + 1
		}
	}
	return append(terms, s[start:])
}

// operator finds =, == or != in a term.
func operator(term string) (at, width int) {
	for i := 0; i < len(term); i++ {
		switch term[i] {
		case '\\':
			i++
		case '!':
			if i+1 < len(term) && term[i+1] == '=' {
				return i, 2
			}
		case '=':
			if i+1 < len(term) && term[i+1] == '=' {
				return i, 2
			}
			return i, 1
		}
	}
	return -1, 0
}

// shape is the rules of the request's type.
func (r *Request) shape() shape {
	if r.Mapped() || r.Group == agentGroup {
		if r.Subresource == "scale" {
			return plainShape // an autoscaling/v1 Scale
		}
		return capiShape
	}
	if r.Resource == crds && r.Group == "apiextensions.k8s.io" && r.Name != "" && InDomain(afterDot(r.Name)) {
		return mirroredShape
	}
	if s, ok := shapes[r.Group+"/"+r.Resource]; ok && (r.Subresource == "" || r.Subresource == "status") {
		if r.Resource == crds && r.Name == "" {
			s.object = anyCRD // one that is created: only its contents say whose it is
		}
		return s
	}
	return plainShape
}

func afterDot(name string) string { _, after, _ := strings.Cut(name, "."); return after }

// Body is the Plan of what the client sends. For a JSON patch give it to JSONPatch.
func (r *Request) Body() Plan {
	s := r.shape()
	return Plan{root: s.object, proto: s.object}
}

// Answer is the Plan of what the API server answers. hide leaves out what Request.Theirs would refuse.
func (r *Request) Answer(hide bool) Plan {
	switch r.Class {
	case ClassDiscovery:
		return Plan{root: r.discovery(), hide: hide, text: true, proto: plainObject}
	case ClassOpenAPI:
		if strings.TrimSuffix(r.Path, "/") == "/openapi/v3" {
			return Plan{root: openAPIRoot, hide: hide, text: true, whole: hide}
		}
		return Plan{root: openAPIDoc, hide: hide, text: true, whole: hide}
	case ClassTunnel:
		return Plan{}
	}
	s := r.shape()
	// What a request is about by itself is never hidden from the answer.
	p := Plan{root: s.object, hide: hide && (r.Watch || r.List), proto: s.object, list: r.List, text: nameForms[r.Group+"/"+r.Resource] != formNone}
	switch {
	case r.Watch:
		p.root, p.stream = s.event, true
	case r.List:
		p.root = s.list
	}
	return p
}

// discovery is the rules of lists of groups and resources.
func (r *Request) discovery() *node {
	switch {
	case r.Group == "":
		if r.Version != "" {
			return resourceList
		}
		return groupList
	case r.Version == "":
		return legacyGroup
	case InDomain(r.Group):
		return capiResourceList
	}
	return resourceList
}

// Failure is the Plan of an answer that is an error: a Status, whatever was asked for.
func (r *Request) Failure() Plan {
	s := plainShape
	if r.Class == ClassObject {
		s = r.shape()
	}
	return Plan{root: s.object, proto: s.object, text: true}
}

// JSONOnly tells that answers have to be JSON: lists, whose length is known only at their end, and documents whose rules aren't
// told for protobuf.
func (r *Request) JSONOnly() bool {
	return r.Class == ClassDiscovery || r.Class == ClassOpenAPI || r.List || nameForms[r.Group+"/"+r.Resource] != formNone
}

// Hides tells that answers leave out, or may, what is not the client's: objects that are named by their group, of all owners together.
func (r *Request) Hides() bool {
	return r.Class == ClassObject && nameForms[r.Group+"/"+r.Resource] != formNone
}

// DeletesUnseen tells that a request deletes such objects without naming them.
func (r *Request) DeletesUnseen(method string) bool {
	return method == "DELETE" && r.Name == "" && r.Hides()
}
