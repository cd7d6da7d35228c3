package translate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

var names = []string{
	Standard, Private, "infrastructure." + Standard, "infrastructure." + Private, "my" + Standard, "hosted" + Private, Standard + ".example.com",
	"a." + Private + "." + Standard, "." + Standard, "A." + Standard, "", "x", "apps", "hypershift.openshift.io", strings.Repeat("a.", 118) + Standard, strings.Repeat("a.", 120) + Private,
}

func anyName() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(names), rapid.String(), rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{
		"cluster", "x-k8s", "io", "hypershift", "openshift", ".", ".", ".", "/", "v1beta1", "v1", "count/", "/apis/", "machines", "\"", "\\"}), 0, 9),
		func(parts []string) string { return strings.Join(parts, "") }))
}

func TestSigma(t *testing.T) {
	t.Run("When applied twice it should give what there was", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := anyName().Draw(t, "name")
			for f := formGV; f < formKind; f++ {
				if once := f.text(s); !f.isText() && f.text(once) != s {
					t.Fatalf("form %d: %q gives %q gives %q", f, s, once, f.text(once))
				}
			}
			if once := formText.text(s); formText.text(once) != s {
				t.Fatalf("text: %q gives %q gives %q", s, once, formText.text(once))
			}
		})
	})
	t.Run("When a name isn't a group of Cluster API it should leave it alone", func(t *testing.T) {
		g := NewWithT(t)
		for _, s := range []string{"mycluster.x-k8s.io", "cluster.x-k8s.io.example.com", "hostedcluster.hypershift.openshift.io", "x-k8s.io", "Cluster.x-k8s.io", ".cluster.x-k8s.io", "a..cluster.x-k8s.io"} {
			g.Expect(Group(s)).To(Equal(s))
		}
		for _, s := range []string{"cluster.x-k8s.io/cluster-name", "cluster.x-k8s.io/v1/x", "cluster.x-k8s.io", "cluster.x-k8s.io/", "cluster.x-k8s.io/v", "cluster.x-k8s.io/v1gamma1", "cluster.x-k8s.io/v1beta"} {
			g.Expect(GroupVersion(s)).To(Equal(s))
		}
		g.Expect(CRDName("cluster.x-k8s.io")).To(Equal("cluster.x-k8s.io"))
		g.Expect(formAPIService.text("v1beta1." + Standard)).To(Equal("v1beta1." + Private))
	})
	t.Run("When a text names groups it should rename whole tokens only", func(t *testing.T) {
		g := NewWithT(t)
		for in, out := range map[string]string{
			`machines.` + Private + ` "x" is forbidden: in API group "` + Private + `".`: `machines.` + Standard + ` "x" is forbidden: in API group "` + Standard + `".`,
			`conflict with "x" using ` + Private + `/v1beta1: .spec`:                     `conflict with "x" using ` + Standard + `/v1beta1: .spec`,
			`label cluster.x-k8s.io/cluster-name`:                                        `label cluster.x-k8s.io/cluster-name`,
			`hostedclusters.hypershift.openshift.io "x"`:                                 `hostedclusters.hypershift.openshift.io "x"`,
			`in ` + Private + `.`:                                                        `in ` + Standard + `.`,
			`metadata.finalizers: "cluster.cluster.x-k8s.io": prefer another name`:       `metadata.finalizers: "cluster.cluster.x-k8s.io": prefer another name`,
			`awsmachines.infrastructure.` + Private + ` "x"`:                             `awsmachines.infrastructure.` + Standard + ` "x"`,
			`Machine.` + Private + ` "bad" is invalid: spec: Required`:                   `Machine.` + Standard + ` "bad" is invalid: spec: Required`,
			`Machine.machine.` + Private:                                                 `Machine.machine.` + Private,
			`x@` + Private:                                                               `x@` + Private,
		} {
			g.Expect(formText.text(in)).To(Equal(out))
		}
		g.Expect(Warning(`299 - "` + Private + `/v1beta1 Machine is deprecated; use \"v1beta2\""`)).To(Equal(`299 - "` + Standard + `/v1beta1 Machine is deprecated; use \"v1beta2\""`))
		for _, same := range []string{"", "299", `299 - "unterminated ` + Private, `299 - ` + Private, `299 - "x\`} {
			g.Expect(Warning(same)).To(Equal(same))
		}
	})
}

// anyJSON generates values with the keys and strings that rules look at, and with everything else.
func anyJSON(depth int) *rapid.Generator[any] {
	leafs := rapid.OneOf(
		rapid.Map(anyName(), func(s string) any { return s }),
		rapid.SampledFrom([]any{Standard + "/v1beta1", Private + "/v1", "machines." + Standard, "Status", "Table", nil, true, 1e300, json.Number("10000000000000000001"), "count/machines." + Private}))
	if depth == 0 {
		return leafs
	}
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 4).Draw(t, "what") {
		case 0:
			return leafs.Draw(t, "leaf")
		case 1:
			return rapid.SliceOfN(anyJSON(depth-1), 0, 3).Draw(t, "array")
		default:
			keys := rapid.OneOf(rapid.SampledFrom([]string{"apiVersion", "kind", "metadata", "ownerReferences", "managedFields", "spec", "status", "apiGroup", "apiGroups",
				"rules", "resources", "resourceNames", "variables", "value", "jsonPatches", "requestHook", "items", "rows", "cells", "object", "name", "names", "shortNames",
				"group", "groups", "message", "details", "hard", "used", "count/machines." + Standard, "paths", "/apis/" + Standard + "/v1", "annotations", "involvedObject", "versions", "responseKind"}), anyName())
			m := map[string]any{}
			for _, k := range rapid.SliceOfN(keys, 0, 5).Draw(t, "keys") {
				m[k] = anyJSON(depth-1).Draw(t, k)
			}
			return m
		}
	})
}

// requests are what plans are made for in properties.
var requests = []string{capi + "machines/m", capi + "machines", capi + "machines?watch=1", core + "secrets/s", core + "events", core + "resourcequotas", "/apis", "/apis/" + Standard, "/apis/" + Standard + "/v1",
	"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?watch=true",
	"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines." + Standard, "/openapi/v3", "/openapi/v2", "/openapi/v3/apis/" + Standard + "/v1", "/apis/" + agentGroup + "/v1/agentmachines/a"}

func anyPlan(t *rapid.T, hide bool) Plan {
	path, query, _ := cut(rapid.SampledFrom(requests).Draw(t, "request"))
	r, err := Parse("GET", path, query)
	if err != nil {
		t.Fatal(err)
	}
	return r.Answer(hide)
}

func body(t *rapid.T) []byte {
	v := anyJSON(5).Draw(t, "value")
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(rapid.Bool().Draw(t, "html"))
	if rapid.Bool().Draw(t, "pretty") {
		enc.SetIndent(" ", "\t")
	}
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBodies(t *testing.T) {
	t.Run("When translated twice it should give the same bytes, and valid JSON in between", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p, src := anyPlan(t, false), body(t)
			once, err := Bytes(p, nil, src)
			if err != nil || !json.Valid(once) {
				t.Fatalf("%s: %v: %s", src, err, once)
			}
			twice, err := Bytes(p, nil, once)
			if err != nil {
				t.Fatal(err)
			}
			// Characters of JSON in a renamed name may be spelt differently; nothing else may.
			if !bytes.Equal(twice, src) && !sameJSON(twice, src) {
				t.Fatalf("%s\ngives\n%s\ngives\n%s", src, once, twice)
			}
			if !bytes.Contains(src, []byte(`\`)) && !bytes.Equal(twice, src) {
				t.Fatalf("%s\ngives\n%s", src, twice)
			}
		})
	})
	t.Run("When it comes in parts it should give the same as in one", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p := anyPlan(t, rapid.Bool().Draw(t, "hide"))
			if p.Whole() {
				return
			}
			src := body(t)
			want, err := Bytes(p, nil, src)
			if err != nil {
				t.Fatal(err)
			}
			x := New(p)
			var got []byte
			for rest := src; len(rest) > 0; {
				n := rapid.IntRange(1, min(len(rest), 9)).Draw(t, "part")
				if got, err = x.Append(got, rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := x.Close(); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%v\n%s\ninstead of\n%s\nof\n%s", err, got, want, src)
			}
		})
	})
	t.Run("When something is hidden the rest should be valid JSON without it", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			src := body(t)
			out, err := Bytes(anyPlan(t, true), nil, src)
			if err != nil || len(bytes.TrimSpace(out)) > 0 && !json.Valid(out) {
				t.Fatalf("%s: %v: %s", src, err, out)
			}
		})
	})
	t.Run("When it is cut off it should be an error or not complete", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p, src := anyPlan(t, false), bytes.TrimSpace(body(t))
			if src[0] != '{' && src[0] != '[' {
				return
			}
			out, err := Bytes(p, nil, src[:rapid.IntRange(1, len(src)-1).Draw(t, "at")])
			if err == nil || json.Valid(out) {
				t.Fatalf("%s: %s", src, out)
			}
		})
	})
	t.Run("When an object is decoded, renamed and encoded it should be the same as translated", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := in(t, "PUT", rapid.SampledFrom([]string{capi + "machines/m", core + "secrets/s", core + "resourcequotas/q"}).Draw(t, "path"))
			src := body(t)
			out, err := Bytes(r.Body(), nil, src)
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal(src, &value); err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(naive(r.Body().root, value, 0))
			if err != nil {
				t.Fatal(err)
			}
			if !sameJSON(out, want) {
				t.Fatalf("%s\ngives\n%s\ninstead of\n%s", src, out, want)
			}
		})
	})
}

// naive is what translation means, on decoded values.
func naive(n *node, v any, k kinds) any {
	if n == nil {
		return v
	}
	switch v := v.(type) {
	case string:
		return n.leaf.text(v)
	case []any:
		for i := range v {
			child := n.elem
			if i == 0 && n.first != nil {
				child = n.first
			}
			v[i] = naive(child, v[i], 0)
		}
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			// Keys are sorted: kind is read before message and rows, and not before details.
			kind, _ := v["kind"].(string)
			k := kindOf([]byte(kind))
			if key < "kind" {
				k = 0
			}
			out[n.keys.text(key)] = naive(n.child([]byte(key), k), value, k)
		}
		return out
	}
	return v
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && func() bool {
		p, _ := json.Marshal(x)
		q, _ := json.Marshal(y)
		return bytes.Equal(p, q)
	}()
}
