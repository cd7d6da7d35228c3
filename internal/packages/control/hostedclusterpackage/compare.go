package hostedclusterpackage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// SameSpec tells whether two Packages install the same. Configurations are compared as JSON, whatever the order of their keys.
func SameSpec(a, b packagesv1.PackageSpec) bool {
	return a.Image == b.Image && a.Component == b.Component && a.Paused == b.Paused && sameConfig(a.Config, b.Config)
}

func sameConfig(a, b *runtime.RawExtension) bool {
	x, y := raw(a), raw(b)
	if bytes.Equal(x, y) {
		return true
	}
	var u, v any
	return json.Unmarshal(x, &u) == nil && json.Unmarshal(y, &v) == nil && reflect.DeepEqual(u, v)
}

func raw(r *runtime.RawExtension) []byte {
	if r == nil || len(r.Raw) == 0 {
		return []byte("null")
	}
	return r.Raw
}

// template is what of a HostedClusterPackage's template reaches Packages.
type template struct {
	Labels      map[string]string      `json:"labels,omitempty"`
	Annotations map[string]string      `json:"annotations,omitempty"`
	Spec        packagesv1.PackageSpec `json:"spec"`
}

func templateOf(p *packagesv1.HostedClusterPackage) template {
	return template{p.Spec.Template.Labels, p.Spec.Template.Annotations, p.Spec.Template.Spec}
}

// encode is the template as JSON with sorted keys, also within its configuration.
func (t template) encode() ([]byte, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("spec.template can't be encoded: %w", err)
	}
	var generic any
	if err := json.Unmarshal(data, &generic); err != nil {
		return nil, fmt.Errorf("spec.template can't be decoded: %w", err)
	}
	return json.Marshal(generic)
}

// hash names the template. 16 hexadecimal digits.
func (t template) hash() (string, error) {
	data, err := t.encode()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

func contains(all, some map[string]string) bool {
	for k, v := range some {
		if have, ok := all[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// Changes are the fields in which a template differs from an older one, as "image" or "config.replicas", sorted. Values are left out: a
// configuration may hold what is not for everybody.
func (r Revision) Changes(older Revision) []string {
	var out []string
	differ("", r.template.fields(), older.template.fields(), &out)
	slices.Sort(out)
	return out
}

// fields is the template as a tree, with the fields of its spec at the top.
func (t template) fields() map[string]any {
	out := map[string]any{}
	if data, err := json.Marshal(t.Spec); err == nil {
		_ = json.Unmarshal(data, &out) // what was just encoded
	}
	out["labels"], out["annotations"] = leaves(t.Labels), leaves(t.Annotations)
	return out
}

func leaves(m map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func differ(path string, a, b map[string]any, out *[]string) {
	for k := range maps.Keys(both(a, b)) {
		x, y := a[k], b[k]
		m, isMap := x.(map[string]any)
		n, isMapToo := y.(map[string]any)
		switch {
		case isMap && (isMapToo || y == nil), isMapToo && x == nil:
			differ(path+k+".", m, n, out)
		case !reflect.DeepEqual(x, y):
			*out = append(*out, path+k)
		}
	}
}

func both(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, b)
	return out
}
