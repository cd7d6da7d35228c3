// Package api_test asks a real API server which objects the CustomResourceDefinitions accept, what they fill in, and what
// they say about the others.
package api_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// verdict is one object, or one change of an object, and what the API server is to say about it.
type verdict struct {
	// object is merged into the base of the table; what is null is removed.
	object string
	// change, if any, is merged into the stored object.
	change string
	// reject is part of the error; empty means that it is accepted.
	reject string
	// field is where the error is found; it is checked only when it is given.
	field string
}

// judge runs a table of verdicts over a base object.
func judge(t *testing.T, base string, table map[string]verdict) {
	t.Helper()
	env := testenv.Start(t)
	c := env.Client(t, runtime.NewScheme())
	ns := env.Namespace(t)
	for name, tc := range table {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obj := merge(t, parse(t, base), tc.object)
			if obj.GetNamespace() == "" && obj.GetName() != "cluster" {
				obj.SetNamespace(ns)
			}
			if tc.change == "" {
				check(g, c.Create(t.Context(), obj, client.DryRunAll), tc)
				return
			}
			if obj.GetName() != "cluster" {
				obj.SetName("")
				obj.SetGenerateName("case-")
			}
			g.Expect(c.Create(t.Context(), obj)).To(Succeed(), "the object to change must be valid")
			check(g, c.Update(t.Context(), merge(t, obj, tc.change), client.DryRunAll), tc)
			g.Expect(c.Delete(t.Context(), obj)).To(Succeed())
		})
	}
}

func check(g *WithT, err error, tc verdict) {
	if tc.reject == "" {
		g.Expect(err).NotTo(HaveOccurred())
		return
	}
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "want an Invalid error, got %v", err)
	g.Expect(err.Error()).To(ContainSubstring(tc.reject))
	if tc.field != "" {
		g.Expect(err.Error()).To(ContainSubstring(tc.field + ": "))
	}
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), obj); err != nil {
		t.Fatalf("parsing the base object: %v", err)
	}
	return obj
}

// merge returns a copy of obj with a JSON merge patch (RFC 7386), given as YAML, applied.
func merge(t *testing.T, obj *unstructured.Unstructured, patch string) *unstructured.Unstructured {
	t.Helper()
	out := obj.DeepCopy()
	p := map[string]any{}
	if err := yaml.Unmarshal([]byte(patch), &p); err != nil {
		t.Fatalf("parsing the patch: %v", err)
	}
	mergeInto(out.Object, p)
	return out
}

func mergeInto(into, patch map[string]any) {
	for key, value := range patch {
		sub, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap:
			old, ok := into[key].(map[string]any)
			if !ok {
				old = map[string]any{}
				into[key] = old
			}
			mergeInto(old, sub)
		default:
			into[key] = value
		}
	}
}

// manifest merges a patch into a base object and returns the result as the base of another table.
func manifest(t *testing.T, base, patch string) string {
	t.Helper()
	out, err := yaml.Marshal(merge(t, parse(t, base), patch))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// long returns n letters.
func long(n int) string { return strings.Repeat("a", n) }

// labels returns n labels in YAML's flow style.
func labels(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("label-%d: x", i))
	}
	return strings.Join(all, ", ")
}
