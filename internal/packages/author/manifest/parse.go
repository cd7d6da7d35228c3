package manifest

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	v1alpha1 "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/platform/internal/packages/author/violation"
)

// Names of the files.
const (
	File     = "manifest.yaml"
	LockFile = "manifest.lock.yaml"
)

// maxBytes bounds a manifest or lock file. Real ones have some KiB, most of it the schema.
const maxBytes = 1 << 20

// Parse reads a manifest without checking more than its form.
func Parse(path string, data []byte) (*v1alpha1.PackageManifest, error) {
	m := &v1alpha1.PackageManifest{}
	if err := decode(path, data, "PackageManifest", violation.ManifestInvalid, m); err != nil {
		return nil, err
	}
	return m, nil
}

// ParseLock reads a lock file without checking more than its form.
func ParseLock(path string, data []byte) (*v1alpha1.PackageManifestLock, error) {
	l := &v1alpha1.PackageManifestLock{}
	if err := decode(path, data, "PackageManifestLock", violation.LockInvalid, l); err != nil {
		return nil, err
	}
	return l, nil
}

func decode(path string, data []byte, kind string, reason violation.Reason, into any) error {
	if len(data) > maxBytes {
		return &violation.Error{Reason: reason, Path: path, Details: fmt.Sprintf("more than %d bytes", maxBytes)}
	}
	meta := metav1.TypeMeta{}
	if err := yaml.Unmarshal(data, &meta); err != nil {
		return &violation.Error{Reason: violation.InvalidYAML, Path: path, Details: yamlError(err)}
	}
	gvk := meta.GroupVersionKind()
	if want := v1alpha1.GroupVersion.WithKind(kind); gvk != want {
		return &violation.Error{
			Reason: violation.UnknownGVK, Path: path,
			Details: fmt.Sprintf("%s, must be %s %s", gvkText(meta), v1alpha1.GroupVersion, kind),
		}
	}
	// Not strict: packages that worked so far may have what nobody knows. Warnings tells of it.
	if err := yaml.Unmarshal(data, into); err != nil {
		return &violation.Error{Reason: reason, Path: path, Details: yamlError(err)}
	}
	return nil
}

// Warnings are the fields of a manifest or lock file that nobody knows, and keys that are there twice: they have no effect, which is seldom meant.
// into is a value of its type.
func Warnings(path string, data []byte, into any) []string {
	var out []string
	raw, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		out = append(out, path+": "+yamlError(err))
		if raw, err = yaml.YAMLToJSON(data); err != nil {
			return out
		}
	}
	mistakes, err := json.UnmarshalStrict(raw, reflect.New(reflect.TypeOf(into).Elem()).Interface())
	if err != nil {
		return out // it is refused
	}
	for _, m := range mistakes {
		out = append(out, path+": "+m.Error())
	}
	return out
}

func gvkText(meta metav1.TypeMeta) string {
	if meta.APIVersion == "" && meta.Kind == "" {
		return "apiVersion and kind are not set"
	}
	return fmt.Sprintf("%q %q", meta.APIVersion, meta.Kind)
}

// yamlError is what a person needs of an error of the YAML library.
func yamlError(err error) string {
	text := err.Error()
	for _, noise := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: "} {
		text = strings.ReplaceAll(text, noise, "")
	}
	return text
}

// YAMLError is the text of an error of the YAML library for a person, without the steps of its conversion.
func YAMLError(err error) string { return yamlError(err) }
