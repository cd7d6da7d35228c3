package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `// Package v1 holds things.
//
// They are many.
//
// +groupName=example.com
package v1

import other "hcp.internal/api/other/v1"

// Thing is served.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="has(self.spec)",message="spec is \"required\""
type Thing struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `

	// spec is what is wanted.
	//
	// +required
	Spec ThingSpec ` + "`json:\"spec\"`" + `
}

// ThingSpec is what is wanted.
type ThingSpec struct {
	// size is in metres | feet
	// (TechPreview).
	//
	// +kubebuilder:default:=3
	// +kubebuilder:validation:Minimum=1
	Size int32 ` + "`json:\"size,omitempty\"`" + `

	// colors are seen.
	//
	// +kubebuilder:validation:items:MaxLength=4
	Colors []other.Color ` + "`json:\"colors,omitempty\"`" + `
	hidden string
}
`

const otherSource = `package v1

// Color is seen.
//
// +kubebuilder:validation:Enum=Red;Blue
type Color string
`

func TestRun(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{"thing/v1/a.go": source, "other/v1/a.go": otherSource, "empty/a_test.go": "package empty"} {
		path = filepath.Join(dir, "api", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "api.md")
	if err := run(filepath.Join(dir, "api"), out); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"kinds are listed":                "- `example.com/v1`: [Thing](#thing-v1-thing)\n",
		"paragraphs stay apart":           "Package v1 holds things.\n\nThey are many.\n",
		"rules are told":                  "- Rule: spec is \"required\".\n",
		"required is told":                "| `spec`<br>[`ThingSpec`](#thing-v1-thingspec)<br>required | spec is what is wanted. |\n",
		"previews, bounds, bars, default": "| `size`<br>`int32`<br>preview | size is in metres \\| feet.<br>Bounds: at least 1.<br>Default: `3`. |\n",
		"other packages are linked":       "| `colors`<br>[`[]other.Color`](#other-v1-color) | colors are seen.<br>Bounds: each length at most 4. |\n",
		"users of a type are linked":      "In [ThingSpec](#thing-v1-thingspec).\n\nColor is seen.\n\nA `string`. One of `Red`, `Blue`.\n",
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s: want %q in\n%s", name, want, raw)
		}
	}
	if strings.Contains(string(raw), "hidden") || strings.Contains(string(raw), "TypeMeta") {
		t.Errorf("want neither private nor standard fields in\n%s", raw)
	}
	if err := run(dir+"/nothing", out); err == nil {
		t.Error("want an error for a folder that does not exist")
	}
}
