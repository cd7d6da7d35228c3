package load_test

import (
	"testing"

	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/manifest"
	"hcp.internal/platform/internal/packages/author/render"
	"hcp.internal/platform/internal/packages/author/violation"
)

const small = `apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: a}
spec:
  scopes: [Namespaced]
  phases: [{name: a}]
  config: {openAPIV3Schema: {type: object, properties: {a: {type: integer, default: 1}}}}
`

// FuzzManifest reads arbitrary manifests.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(small))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := load.Load(t.Context(), load.Files{"manifest.yaml": data}, "")
		if _, ok := err.(*violation.Error); err != nil && !ok { //nolint:errorlint // violations are not wrapped
			t.Errorf("not a violation: %v", err)
		}
	})
}

// FuzzLock reads arbitrary lock files.
func FuzzLock(f *testing.F) {
	f.Add([]byte("apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nspec: {images: [{name: a, image: b, digest: c}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := load.Load(t.Context(), load.Files{"manifest.yaml": []byte(small), manifest.LockFile: data}, "")
		if _, ok := err.(*violation.Error); err != nil && !ok { //nolint:errorlint // violations are not wrapped
			t.Errorf("not a violation: %v", err)
		}
		if err == nil {
			_ = manifest.Consistent(p.Manifest, p.Lock)
		}
	})
}

// FuzzRender executes arbitrary templates.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {package-operator.run/phase: a}}\n", "{{ range until 10 }}{{ . | quote }}{{ end }}",
		`{{ define "x" }}{{ . }}{{ end }}{{ template "x" .config }}`, `{{ $d := dict "a" 1 }}{{ set $d "b" $d | toJson }}`, `{{ cel "1 == 1" }}{{ getFileGlob "*" }}`,
		`{{ printf "%*d" 10 1 }}{{ list nil | join "," }}{{ nil }}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := load.Load(t.Context(), load.Files{"manifest.yaml": []byte(small), "a.yaml.gotmpl": []byte(text)}, "")
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := render.Render(t.Context(), p, render.Context{Config: map[string]any{"a": int64(1)}})
		if err == nil {
			_, _ = rendered.Template(p, "a")
		}
	})
}
