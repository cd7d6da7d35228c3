package translate

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
)

// nasty is what parsers stumble over.
var nasty = []string{
	``, ` `, `{`, `}`, `]`, `[`, `{"`, `{"a`, `{"a":`, `{"a":"`, `{"a":"\`, `{"a":"\u`, `{"a":"\u12`, `{"a":1}}`, `{"a":1}garbage`, "\xef\xbb\xbf{}", "{\"a\":\"\x00\"}", "{\"a\":\"\xff\xfe\"}",
	`{"apiVersion":"cluster.x-k8s.io/v1","apiVersion":"cluster.x-k8s.io/v2"}`, `{"api\u0056ersion":"cluster\u002ex-k8s.io\/v1"}`, `{"apiVersion":"cluster.x-k8s.io\/v1"}`,
	`{"metadata":{"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1"},null,1,"x",[]]}}`, `{"metadata":null,"spec":[],"status":"x"}`, `{"spec":1e999999,"status":-0.0E+7}`,
	`{"kind":"Status","message":"machines.cluster.hypershift.openshift.io \"x\" not found\n\t\u003ccluster.x-k8s.io\u003e"}`, `{"message":"cluster.x-k8s.io","kind":"Status"}`,
	`{"items":[{"metadata":{"name":"machines.cluster.x-k8s.io"}}, {"metadata":{"name":"a.b"}} ,{"metadata":{"name":"machines.cluster.hypershift.openshift.io"}}]}`,
	`{"items":["",{"metadata":{}}]}`, `{"items":[,]}`, `{"items":[{"metadata":{"name":"machines.cluster.x-k8s.io"}}]}`, `{"type":"ADDED","object":{}}` + "\n" + `{"type":"BOOKMARK","object":{"apiVersion":"cluster.x-k8s.io/v1"}}`,
	`{"groups":[{"name":"cluster.x-k8s.io"},{"name":"apps"}]}`, `{"spec":{"variables":[{"value":{"apiVersion":"cluster.x-k8s.io/v1"}}]}}`, `null`, `true`, `"x"`, `12`, `{"rules":[{"resourceNames":["a.cluster.x-k8s.io"],"resources":["customresourcedefinitions"]}]}`,
	`{"paths":{"/apis/cluster.x-k8s.io/v1":{"x":1},"/api":{}, "/apis/cluster.hypershift.openshift.io/v1":{"$ref":"#/definitions/io.x-k8s.cluster.v1.M"}}}`,
}

func FuzzJSON(f *testing.F) {
	for _, body := range append(nasty, strings.Repeat("[", 600), strings.Repeat(`{"spec":`, 600), `{"apiVersion":"`+strings.Repeat("x", 2000)+`"}`, `{"`+strings.Repeat("k", 2000)+`":1}`) {
		f.Add([]byte(body), uint8(3), uint8(5))
	}
	f.Fuzz(func(t *testing.T, src []byte, which, part uint8) {
		path, query, _ := cut(requests[int(which)%len(requests)])
		r, err := Parse("GET", path, query)
		if err != nil {
			t.Fatal(err)
		}
		p := r.Answer(false)
		whole, err := Bytes(p, nil, src)
		x := New(p)
		var got []byte
		var partErr error
		for rest := src; len(rest) > 0 && partErr == nil; {
			n := min(len(rest), int(part)%16+1)
			got, partErr = x.Append(got, rest[:n])
			rest = rest[n:]
		}
		if partErr == nil {
			partErr = x.Close()
		}
		// What is of no interest isn't looked at closely, and in parts more seems to be of interest.
		if (err == nil) != (partErr == nil) && json.Valid(src) || err == nil && partErr == nil && !bytes.Equal(got, whole) {
			t.Fatalf("in parts: %v %q, at once: %v %q", partErr, got, err, whole)
		}
		hidden, hideErr := Bytes(r.Answer(true), nil, src)
		if !json.Valid(src) {
			return
		}
		if !json.Valid(whole) || err != nil && !strings.Contains(err.Error(), "nests") {
			t.Fatalf("%q became %q: %v", src, whole, err)
		}
		if hideErr == nil && len(bytes.TrimSpace(hidden)) > 0 && !json.Valid(hidden) {
			t.Fatalf("%q became %q", src, hidden)
		}
		twice, err := Bytes(p, nil, whole)
		if err != nil || !bytes.Equal(twice, src) && !bytes.ContainsRune(src, '\\') {
			t.Fatalf("%q became %q: %v", src, twice, err)
		}
	})
}

func FuzzJSONPatch(f *testing.F) {
	for _, path := range []string{"/metadata/ownerReferences/0/apiVersion", "/spec/hard/count~1machines.cluster.x-k8s.io", "", "/", "/~2", "/spec/~1", "/metadata/ownerReferences/-", "metadata", "/spec/variables/0/value/apiVersion"} {
		f.Add([]byte(`[{"op":"add","path":"` + path + `","value":"cluster.x-k8s.io/v1beta1"}]`))
	}
	for _, body := range nasty {
		f.Add([]byte(body))
		f.Add([]byte("[" + body + "]"))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, path := range []string{core + "resourcequotas/q", capi + "machines/m"} {
			p := in(t, "PATCH", path).Body()
			once, _ := JSONPatch(p, nil, src)
			if json.Valid(src) != json.Valid(once) && json.Valid(src) {
				t.Fatalf("%q became %q", src, once)
			}
			if twice, _ := JSONPatch(p, nil, once); json.Valid(src) && !bytes.Equal(twice, src) && !bytes.ContainsRune(src, '\\') {
				t.Fatalf("%q became %q became %q", src, once, twice)
			}
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, p := range requests {
		path, query, _ := cut(p)
		f.Add(path, query)
	}
	for _, p := range []string{"//apis/x", "/apis/%2e%2e/x", "/apis/cluster.x-k8s.io%2fv1/machines", "/api/v1/watch", "/api/v1/namespaces", "/api/v1/namespaces/n/status", "/api/v1/nodes/n/proxy/../..", "/apis/a/b/namespaces/proxy/%2f"} {
		f.Add(p, "fieldSelector=metadata.name%3D%3Dx\\,y,involvedObject.apiVersion!=cluster.x-k8s.io/v1&watch")
	}
	f.Fuzz(func(t *testing.T, path, query string) {
		r, err := Parse("GET", path, query)
		if err != nil {
			return
		}
		u, err := url.Parse("http://h" + r.Path)
		if from, fromErr := url.Parse("http://h" + path); fromErr == nil && (err != nil || u.Host != from.Host) {
			t.Fatalf("%q became %q: %v", path, r.Path, err)
		}
		back, err := Parse("GET", r.Path, r.Query)
		if err != nil || back.Path != path && !strings.Contains(path, "%") {
			t.Fatalf("%q became %q became %q: %v", path, r.Path, back.Path, err)
		}
	})
}

func FuzzProtobuf(f *testing.F) {
	f.Add([]byte("k8s\x00\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x06\x0a\x04\x0a\x02ab"), false)
	f.Add([]byte("k8s\x00"), true)
	f.Add([]byte("k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), true)
	f.Fuzz(func(t *testing.T, src []byte, list bool) {
		for _, path := range requests {
			path, query, _ := cut(path)
			r, err := Parse("GET", path, query)
			if err != nil {
				t.Fatal(err)
			}
			p := r.Answer(false)
			p.list = list
			if p.proto == nil {
				continue
			}
			once, err := Protobuf(p, nil, src)
			if err != nil {
				continue
			}
			twice, err := Protobuf(p, nil, once)
			if err != nil {
				t.Fatalf("%q became %q: %v", src, once, err)
			}
			if again, err := Protobuf(p, nil, twice); err != nil || !bytes.Equal(again, once) {
				t.Fatalf("%q, %q, %q: %v", src, once, again, err)
			}
			if _, err := ProtobufEvent(p, nil, src); err == nil {
				continue
			}
		}
	})
}

func FuzzOpenAPIProtobuf(f *testing.F) {
	doc, err := openapi_v2.ParseDocument([]byte(openAPIDocument()))
	if err != nil {
		f.Fatal(err)
	}
	wire, err := proto.Marshal(doc)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wire)
	f.Add([]byte("\x42\x00\x4a\x02\x0a\x00"))
	r, err := Parse("GET", "/openapi/v2", "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if proto.Unmarshal(src, &openapi_v2.Document{}) != nil {
			_, _ = OpenAPIProtobuf(r.Answer(true), nil, src)
			return
		}
		for _, hide := range []bool{true, false} {
			out, err := OpenAPIProtobuf(r.Answer(hide), nil, src)
			if err != nil {
				continue // strings that are no UTF-8, and the like
			}
			if err := proto.Unmarshal(out, &openapi_v2.Document{}); err != nil {
				t.Fatalf("%x became %x: %v", src, out, err)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	for _, s := range append(nasty, names...) {
		f.Add(s)
	}
	f.Add(`299 - "cluster.hypershift.openshift.io/v1beta1 Machine is deprecated; use \"v1beta2\"" "Sat, 21 Nov 2026 15:00:00 GMT"`)
	f.Fuzz(func(t *testing.T, s string) {
		if formText.text(formText.text(s)) != s {
			t.Fatalf("%q became %q became %q", s, formText.text(s), formText.text(formText.text(s)))
		}
		Warning(s)
		fieldSelector(s, formCRD)
		walk(capiObject, []byte(s))
	})
}
