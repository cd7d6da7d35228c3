package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
)

// redacted stands for the value of a Secret that isn't printed.
const redacted = "REDACTED"

// sink takes what is rendered.
type sink interface {
	// put takes an object of a component. keepStatus is for what is all status.
	put(component string, obj client.Object, keepStatus bool) error
	// close writes what is left.
	close() error
}

// content is an object as it would be applied: with apiVersion and kind, without status and what servers set.
func content(obj client.Object, keepStatus bool) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	out = runtime.DeepCopyJSON(out)
	if !keepStatus {
		delete(out, "status")
	}
	for _, path := range [][]string{{"metadata", "creationTimestamp"}, {"spec", "template", "metadata", "creationTimestamp"},
		{"spec", "jobTemplate", "metadata", "creationTimestamp"}, {"spec", "jobTemplate", "spec", "template", "metadata", "creationTimestamp"}} {
		unstructured.RemoveNestedField(out, path...)
	}
	if claims, ok, _ := unstructured.NestedSlice(out, "spec", "volumeClaimTemplates"); ok {
		for _, claim := range claims {
			if c, ok := claim.(map[string]any); ok {
				unstructured.RemoveNestedField(c, "metadata", "creationTimestamp")
				delete(c, "status")
			}
		}
		if err := unstructured.SetNestedSlice(out, claims, "spec", "volumeClaimTemplates"); err != nil {
			return nil, err
		}
	}
	u := unstructured.Unstructured{Object: out}
	if u.GetKind() == "" || u.GetAPIVersion() == "" {
		return nil, fmt.Errorf("%T %s bears no kind", obj, obj.GetName())
	}
	return out, nil
}

// stream prints all objects at the end.
type stream struct {
	out       io.Writer
	format    output.Format
	sensitive bool
	objs      []map[string]any
}

func (s *stream) put(_ string, obj client.Object, keepStatus bool) error {
	out, err := content(obj, keepStatus)
	if err != nil {
		return err
	}
	if !s.sensitive {
		connect.RedactSecret(&unstructured.Unstructured{Object: out}, redacted)
	}
	s.objs = append(s.objs, out)
	return nil
}

func (s *stream) close() error { return s.format.Objects(s.out, s.objs) }

// folder writes a file for each object.
type folder struct{ root string }

func newFolder(root string, overwrite bool) (*folder, error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--output-dir: %w", err)
	}
	if len(entries) > 0 && !overwrite {
		return nil, fmt.Errorf("--output-dir %s %w", root, errNotEmpty)
	}
	return &folder{root: root}, os.MkdirAll(root, 0o700)
}

// fileName is the name of an object's file. What file systems can't have becomes "_".
var fileName = strings.NewReplacer(":", "_", "/", "_", "<", "_", ">", "_")

// equals stands for a text that is nothing but an equals sign while it is written.
const equals = "text-that-is-nothing-but-an-equals-sign"

// document is an object as YAML that readers of YAML 1.1 understand, too: for them an equals sign alone is a tag of its own, which PyYAML and what
// is built on it refuse, and the writer does not quote it.
func document(obj map[string]any) ([]byte, error) {
	raw, err := yaml.Marshal(withoutEquals(runtime.DeepCopyJSON(obj)))
	return bytes.ReplaceAll(raw, []byte(equals), []byte(`"="`)), err
}

func withoutEquals(value any) any {
	switch v := value.(type) {
	case string:
		if v == "=" {
			return equals
		}
	case map[string]any:
		for key, inner := range v {
			v[key] = withoutEquals(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = withoutEquals(inner)
		}
	}
	return value
}

func (f *folder) put(component string, obj client.Object, keepStatus bool) error {
	out, err := content(obj, keepStatus)
	if err != nil {
		return err
	}
	raw, err := document(out)
	if err != nil {
		return err
	}
	u := unstructured.Unstructured{Object: out}
	path := filepath.Join(f.root, fileName.Replace(component), fileName.Replace(strings.ToLower(u.GetKind())+"_"+u.GetName())+".yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

func (f *folder) close() error { return nil }
