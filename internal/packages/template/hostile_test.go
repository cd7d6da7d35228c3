package template_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/packages/template"
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
			_, err := template.Render(t.Context(), h.Spec("a"), sourceObject(), map[string]any{})
			g.Expect(err).To(HaveOccurred())
			g.Expect(err.Error()).To(Or(ContainSubstring(h.Want), ContainSubstring(packagestest.TooSlow)))
			g.Expect(len(err.Error())).To(BeNumerically("<", 16<<10), "the message fits a condition")
			t.Logf("%.2f s of processor time, %.2f s in all: %.300s", (packagestest.CPU(t) - cpu).Seconds(), time.Since(begin).Seconds(), err)
			g.Expect(packagestest.CPU(t) - cpu).To(BeNumerically("<", packagestest.Shadow*packagestest.RefusalTime))
			packagestest.ExpectMemoryBelow(t, maxMemory)
		})
	}
}

// TestFriendly has what real templates do, beside the bounds.
func TestFriendly(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"When a text is padded it should be":                {`{{ printf "%-5s|%05d|%.2f" "a" 3 1.5 }}`, "a    |00003|1.50"},
		"When numbers count it should give them":            {`{{ until 3 }}{{ untilStep 3 0 -2 }}{{ until -2 }}{{ untilStep 0 5 0 }}`, "[0 1 2][3 1][0 -1][]"},
		"When a sequence is wanted it should be as sprig's": {`{{ seq 5 }},{{ seq -3 }},{{ seq 0 2 10 }},{{ seq 0 -2 -5 }},{{ seq 2 4 }},{{ seq 5 2 0 }},{{ seq }}`, "1 2 3 4 5,1 0 -1 -2 -3,0 2 4 6 8 10,0 -2 -4,2 3 4,,"},
		"When versions are compared it should":              {`{{ (semver "1.2.3-rc.1").Minor }}{{ semverCompare ">=1.2" "1.3.0" }}{{ (semver "1.2.3").LessThan (semver "1.3.0") }}{{ semver "v1.2.3" }}`, "2truetrue1.2.3"},
		"When expressions match it should":                  {`{{ regexFindAll "[a-c]+" "ab-ca-x" -1 }}{{ regexReplaceAll "(a)(b)?" "ab-a" "<${1}>" }}{{ regexReplaceAllLiteral "a" "aa" "$1" }}{{ regexSplit "-" "a-b-c" 2 }}{{ regexMatch "(" "x" }}{{ regexFind "b+" "abbc" }}{{ regexFindAll "a*" "baac" -1 | len }}`, "[ab ca]<a>-<a>$1$1[a b-c]falsebb3"},
		"When a list is made unique it should":              {`{{ uniq (list "a" "b" "a") }}{{ without (list 1 2 3) 2 }}`, "[a b][1 3]"},
		"When templates nest it should go through them":     {`{{ define "x" }}{{ if gt . 0 }}{{ include "x" (sub . 1) }}{{ else }}end{{ end }}{{ end }}{{ include "x" 500 }}`, "end"},
		"When a value is large it should be taken":          {`{{ $x := repeat 1000000 "a" }}{{ $y := printf "%s" $x | quote | indent 4 | trim | fromYAML }}{{ len $y }}`, "1000000"},
		"When text has many lines it should be indented":    {`{{ len (nindent 8 (repeat 10000 "some line\n")) }}`, "180009"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := template.Execute(t.Context(), tc.text, map[string]any{})
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(out)).To(Equal(tc.want))
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
			obj, err := template.Render(t.Context(), h.Spec(""), source, map[string]any{})
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
		_, err := template.Render(ctx, packagestest.HostileTemplate{Template: text, Key: key}.Spec("a"), sourceObject(), map[string]any{})
		if err != nil && strings.Contains(err.Error(), "can't be rendered") {
			t.Fatalf("a panic: %v", err)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Fatalf("took %s", took)
		}
	})
}
