package api_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	auditv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	karpenterv1 "hcp.internal/api/karpenter/v1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
)

// baseline describes the definitions of the previous release, with every field and its type. See tools/schemacompat.
const baseline = "../../tools/schemacompat/baseline.tsv"

// shape is a kind of the previous release: path of a field to its facts.
type shape map[string]map[string]string

// previous reads the kinds of the previous release, with previews where there are any.
func previous(t *testing.T) map[string]shape {
	t.Helper()
	raw, err := os.ReadFile(baseline)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]shape{}
	var current shape
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			_, name, _ := strings.Cut(heading, "\t")
			current = shape{} // techpreview comes after default and holds all of it
			all[name] = current
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		c := strings.SplitN(line, "\t", 3)
		if current[c[0]] == nil {
			current[c[0]] = map[string]string{}
		}
		current[c[0]][c[1]] = c[2]
	}
	return all
}

// sample makes an object that has every field below path, none of them with its zero value.
func (s shape) sample(path string) map[string]any {
	out := map[string]any{}
	for at := range s {
		name, ok := strings.CutPrefix(at, path)
		if !ok || at == "" || name == "" || strings.ContainsAny(name, ".[{") {
			continue
		}
		out[name] = s.value(at, s[at]["type"], "")
	}
	return out
}

func (s shape) value(at, kind, prefix string) any {
	if items, ok := strings.CutPrefix(kind, "[]"); ok {
		if items == "object" {
			return []any{s.sample(at + "[].")}
		}
		return []any{s.value(at, items, "items:")}
	}
	if values, ok := strings.CutPrefix(kind, "map[string]"); ok {
		if values == "object" {
			return map[string]any{"key": s.sample(at + "{}.")}
		}
		return map[string]any{"key": s.value(at, values, "items:")}
	}
	switch kind {
	case "object":
		return s.sample(at + ".")
	case "integer":
		return float64(1)
	case "boolean":
		return true
	case "string":
		if s[at][prefix+"format"] == `"date-time"` {
			return "2026-01-02T03:04:05Z"
		}
		return "1h0m0s" // good as a text and as a duration
	}
	return "1Gi" // good as a quantity and where a number or a text may be
}

func kinds(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hyperv1.AddToScheme, certificatesv1alpha1.AddToScheme, schedulingv1alpha1.AddToScheme,
		auditv1alpha1.AddToScheme, karpenterv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// TestPreviousObjects reads what the previous release could write, and writes it again.
func TestPreviousObjects(t *testing.T) {
	scheme, all := kinds(t), previous(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := all[name]
			want := s.sample("")
			_, group, _ := strings.Cut(name, ".")
			gvk := schema.GroupVersionKind{Group: group, Version: s[""]["version"], Kind: s[""]["kind"]}
			want["apiVersion"], want["kind"] = gvk.GroupVersion().String(), gvk.Kind
			obj, err := scheme.New(gvk)
			g.Expect(err).NotTo(HaveOccurred())

			raw, err := json.Marshal(want)
			g.Expect(err).NotTo(HaveOccurred())
			strict := json.NewDecoder(bytes.NewReader(raw))
			strict.DisallowUnknownFields()
			g.Expect(strict.Decode(obj)).To(Succeed(), "today's type must know every field of before, with its type")
			raw, err = json.Marshal(obj)
			g.Expect(err).NotTo(HaveOccurred())
			got := map[string]any{}
			g.Expect(json.Unmarshal(raw, &got)).To(Succeed())
			delete(got, "metadata")
			g.Expect(lost(want, got, "")).To(BeEmpty(), "these must survive")
		})
	}
}

// lost lists the paths of want that got does not have, or has otherwise.
func lost(want, got any, path string) []string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok && len(w) == 0 && (path == ".spec" || path == ".status") {
			return nil // nothing can be in it
		}
		if !ok {
			return []string{path}
		}
		var all []string
		for _, key := range slices.Sorted(maps.Keys(w)) {
			all = append(all, lost(w[key], g[key], path+"."+key)...)
		}
		return all
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return []string{path}
		}
		var all []string
		for i := range w {
			all = append(all, lost(w[i], g[i], path+"[]")...)
		}
		return all
	}
	if want != got {
		return []string{path}
	}
	return nil
}

// TestNextObjects reads what a later release may write, with fields in every object that today's types don't know, changes one
// field and looks at what is sent: the others must not be touched.
func TestNextObjects(t *testing.T) {
	scheme, all := kinds(t), previous(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := all[name]
			next := s.sample("")
			extend(next)
			_, group, _ := strings.Cut(name, ".")
			gvk := schema.GroupVersionKind{Group: group, Version: s[""]["version"], Kind: s[""]["kind"]}
			obj, err := scheme.New(gvk)
			g.Expect(err).NotTo(HaveOccurred())
			raw, err := json.Marshal(next)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(json.Unmarshal(raw, obj)).To(Succeed())

			after := obj.DeepCopyObject().(client.Object)
			after.SetLabels(map[string]string{"a": "b"})
			sent, err := client.MergeFrom(obj.(client.Object)).Data(after)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(sent)).To(MatchJSON(`{"metadata": {"labels": {"a": "b"}}}`))
		})
	}
}

// extend puts a field of a later release into every object.
func extend(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, below := range v {
			extend(below)
		}
		if _, isMap := v["key"].(string); !isMap {
			v["fieldOfALaterRelease"] = map[string]any{"a": []any{float64(1)}}
		}
	case []any:
		for _, below := range v {
			extend(below)
		}
	}
}
