package objecttemplate_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hcp.internal/platform/internal/packages/control/objecttemplate"
	"hcp.internal/platform/internal/packages/packagestest"
)

func sourceObject() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "source", "namespace": "a"},
		"data": map[string]any{"value": strings.Repeat("a", 100)},
	}}
}

// maxMemory is how much memory refusing a hostile template may take: two at a time fit into the operator's limit.
const maxMemory = 384 << 20

// TestHostile renders each of the hostile templates, one after the other.
func TestHostile(t *testing.T) {
	for _, h := range packagestest.HostileTemplates() {
		t.Run("When a template tries "+h.Name+" it should be refused", func(t *testing.T) {
			g := NewWithT(t)
			runtime.GC()
			cpu, begin := packagestest.CPU(t), time.Now()
			_, err := objecttemplate.Render(t.Context(), h.Spec("a"), sourceObject(), map[string]any{})
			g.Expect(err).To(HaveOccurred())
			g.Expect(err.Error()).To(Or(ContainSubstring(h.Want), ContainSubstring(packagestest.TooSlow)))
			g.Expect(len(err.Error())).To(BeNumerically("<", 16<<10), "the message fits a condition")
			t.Logf("%.2f s of processor time, %.2f s in all: %.300s", (packagestest.CPU(t) - cpu).Seconds(), time.Since(begin).Seconds(), err)
			g.Expect(packagestest.CPU(t) - cpu).To(BeNumerically("<", packagestest.Shadow*packagestest.RefusalTime))
			packagestest.ExpectMemoryBelow(t, maxMemory)
		})
	}
}

// TestKeys has the paths that people use.
func TestKeys(t *testing.T) {
	source := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "a", "annotations": map[string]any{"example.com/x": "y"}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "A", "status": "False"}, map[string]any{"type": "Ready", "status": "True"}}},
	}}
	for key, want := range map[string]string{
		"metadata.name":                                 "a",
		".metadata.name":                                "a",
		"{metadata.name}":                               "a",
		"{.metadata.name}":                              "a",
		`metadata.annotations['example\.com/x']`:        "y",
		`.status.conditions[?(@.type=="Ready")].status`: "True",
		`.status.conditions[*].type`:                    "[A Ready]",
		`.status.conditions[0,1].type`:                  "[A Ready]",
		`.status.conditions[-1:].type`:                  "Ready",
		`..name`:                                        "a",
		`.status.conditions[?(@.type=="Nope")].status`:  "[]",
	} {
		t.Run(key, func(t *testing.T) {
			g, h := NewWithT(t), packagestest.HostileTemplate{Template: "{a: {{ .config.value }}, kind: {{ .config.value | toString | quote }}}", Key: key}
			obj, err := objecttemplate.Render(t.Context(), h.Spec(""), source, map[string]any{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(obj.GetKind()).To(Equal(want))
		})
	}
}

// FuzzExecute looks for templates that panic or go on for ever. A stack that overflows and memory without end end the process.
func FuzzExecute(f *testing.F) {
	for _, h := range packagestest.HostileTemplates() {
		if len(h.Template) < 4<<10 {
			f.Add(h.Template, h.Key)
		}
	}
	f.Fuzz(func(t *testing.T, text, key string) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := objecttemplate.Render(ctx, packagestest.HostileTemplate{Template: text, Key: key}.Spec("a"), sourceObject(), map[string]any{})
		if err != nil && strings.Contains(err.Error(), "can't be rendered") {
			t.Fatalf("a panic: %v", err)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Fatalf("took %s", took)
		}
	})
}
