package render

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/manifest"
	"hcp.internal/platform/internal/packages/author/violation"
	"hcp.internal/platform/internal/packages/engine/conditiontype"
)

const (
	// maxObjects bounds the objects of a package.
	maxObjects = 10_000
	// maxObject bounds one, in bytes of YAML. etcd takes 1.5 MiB, and an object is stored within another here.
	maxObject = 1_200_000
	// maxAliases bounds how often a document refers to another part of itself; each time it is repeated.
	maxAliases = 1000
)

// Object is an object of a package, and where it comes from.
type Object struct {
	Path string
	// Index of the document in its file.
	Index int
	*unstructured.Unstructured
}

// objectsOf parses the files that hold objects, in order.
func objectsOf(p *load.Package, files load.Files) ([]Object, error) {
	var out []Object
	for _, name := range files.Paths() {
		if !load.IsYAML(name) {
			continue
		}
		for i, doc := range documents(files[name]) {
			at := func(reason violation.Reason, details string) error {
				return &violation.Error{Reason: reason, Path: name, Index: &i, Component: p.Component, Details: details}
			}
			if len(doc.text) > maxObject {
				return nil, at(violation.TooLarge, fmt.Sprintf("more than %d bytes", maxObject))
			}
			obj, err := parseDocument(doc)
			if err != nil {
				return nil, at(violation.InvalidYAML, manifest.YAMLError(err))
			}
			if len(obj) == 0 {
				continue
			}
			if len(out) >= maxObjects {
				return nil, at(violation.TooLarge, fmt.Sprintf("more than %d objects", maxObjects))
			}
			if err := wellFormed(obj); err != nil {
				return nil, at(violation.InvalidYAML, err.Error())
			}
			out = append(out, Object{Path: name, Index: i, Unstructured: &unstructured.Unstructured{Object: obj}})
		}
	}
	return out, nil
}

// document is a part of a file, and how many lines are before it.
type document struct {
	text  []byte
	lines int
}

// documents cuts a file at lines that are "---".
func documents(data []byte) []document {
	text := strings.TrimRight(strings.ReplaceAll(string(data), "\r\n", "\n"), "-\n")
	trimmed := strings.TrimLeft(text, "-\n")
	line := strings.Count(text[:len(text)-len(trimmed)], "\n")
	var out []document
	current, start := []string{}, line
	for l := range strings.SplitSeq(trimmed, "\n") {
		line++
		if l == "---" {
			out = append(out, document{text: []byte(strings.Join(current, "\n")), lines: start})
			current, start = nil, line
			continue
		}
		current = append(current, l)
	}
	return append(out, document{text: []byte(strings.Join(current, "\n")), lines: start})
}

var errAliases = fmt.Errorf("more than %d references to anchors", maxAliases)

// parseDocument reads an object; nil is an empty document. Errors count lines from the top of the file.
func parseDocument(doc document) (map[string]any, error) {
	if bytes.Count(doc.text, []byte("*")) > maxAliases && bytes.Contains(doc.text, []byte("&")) {
		return nil, errAliases
	}
	var out map[string]any
	padded := append(bytes.Repeat([]byte("\n"), doc.lines), doc.text...)
	// A key that is there twice is no mistake for whoever made the packages that are around: the last one counts.
	if err := yaml.Unmarshal(padded, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// maxDepth bounds how deep an object may nest.
const maxDepth = 100

// wellFormed checks what code that works with objects relies on, and makes numbers what the API machinery expects.
func wellFormed(obj map[string]any) error {
	if _, err := normalize(obj, 0); err != nil {
		return err
	}
	dropNull(obj, "apiVersion", "kind")
	for _, name := range []string{"apiVersion", "kind"} {
		if v, ok := obj[name]; ok {
			if _, ok := v.(string); !ok {
				return fmt.Errorf("%s must be text", name)
			}
		}
	}
	if obj["metadata"] == nil {
		obj["metadata"] = map[string]any{} // what is missing in it is reported
	}
	fields, ok := obj["metadata"].(map[string]any)
	if !ok {
		return errors.New("metadata must be a map")
	}
	dropNull(fields, "name", "namespace", "generateName")
	for _, name := range []string{"name", "namespace", "generateName"} {
		if v, ok := fields[name]; ok {
			if _, ok := v.(string); !ok {
				return fmt.Errorf("metadata.%s must be text", name)
			}
		}
	}
	for _, name := range []string{"labels", "annotations"} {
		switch m := fields[name].(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			for k, v := range m {
				if v == nil {
					delete(m, k)
					continue
				}
				if _, ok := v.(string); !ok {
					return fmt.Errorf("metadata.%s: the value of %q must be text", name, k)
				}
			}
		default:
			return fmt.Errorf("metadata.%s must be a map", name)
		}
	}
	return nil
}

// dropNull removes fields that templates left empty: they are as good as missing, and the API server takes them so.
func dropNull(obj map[string]any, names ...string) {
	for _, name := range names {
		if v, ok := obj[name]; ok && v == nil {
			delete(obj, name)
		}
	}
}

func normalize(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	var err error
	switch t := v.(type) {
	case map[string]any:
		for k, each := range t {
			if t[k], err = normalize(each, depth+1); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, each := range t {
			if t[i], err = normalize(each, depth+1); err != nil {
				return nil, err
			}
		}
	case float64:
		if whole := int64(t); float64(whole) == t && whole > -1<<53 && whole < 1<<53 {
			return whole, nil
		}
	}
	return v, nil
}

// checkObjects validates objects; all mistakes are joined.
func checkObjects(p *load.Package, objects []Object) error {
	phases := map[string]bool{}
	for _, phase := range p.Manifest.Spec.Phases {
		phases[phase.Name] = true
	}
	type key struct {
		schema.GroupKind
		namespace, name string
	}
	seen := map[key]bool{}
	var errs []error
	for _, o := range objects {
		report := func(reason violation.Reason, details string) {
			errs = append(errs, &violation.Error{Reason: reason, Path: o.Path, Index: &o.Index, Component: p.Component, Details: details})
		}
		gvk := o.GroupVersionKind()
		if gvk.Version == "" || gvk.Kind == "" {
			report(violation.MissingGVK, "")
		}
		if k := (key{gvk.GroupKind(), o.GetNamespace(), o.GetName()}); seen[k] {
			report(violation.DuplicateObject, fmt.Sprintf("%s %s/%s", gvk.GroupKind(), k.namespace, k.name))
		} else {
			seen[k] = true
		}
		for _, problem := range metavalidation.ValidateLabels(o.GetLabels(), field.NewPath("metadata", "labels")) {
			report(violation.LabelsInvalid, problem.Error())
		}
		annotations := o.GetAnnotations()
		switch phase := annotations[packagesv1.PhaseAnnotation]; {
		case phase == "":
			report(violation.MissingPhase, "")
		case !phases[phase]:
			report(violation.PhaseNotFound, phase)
		}
		if _, err := conditionMappings(annotations[packagesv1.ConditionMapAnnotation]); err != nil {
			report(violation.InvalidAnnotation, packagesv1.ConditionMapAnnotation+": "+err.Error())
		}
		if o.GetName() == "" {
			report(violation.InvalidObject, "metadata.name is missing")
		}
		if _, found := o.Object["metadata"].(map[string]any)["ownerReferences"]; found {
			report(violation.InvalidObject, "metadata.ownerReferences must not be set: objects of a package belong to it")
		}
		if len(errs) > maxErrors {
			break
		}
	}
	return errors.Join(errs...)
}

// maxErrors is how many mistakes are reported; a condition has room for 32 KiB.
const maxErrors = 20

// conditionMappings reads "Source => prefix/Destination", one a line.
func conditionMappings(text string) ([]packagesv1.ConditionMapping, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	var out []packagesv1.ConditionMapping
	for i, line := range strings.Split(text, "\n") {
		parts := strings.Split(line, "=>")
		if len(parts) != 2 {
			return nil, fmt.Errorf("expected 2 part mapping got %d in line %d", len(parts), i+1)
		}
		source, destination := strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1])
		switch {
		case source == "":
			return nil, fmt.Errorf("sourceType can't be empty in line %d", i+1)
		case destination == "":
			return nil, fmt.Errorf("destinationType can't be empty in line %d", i+1)
		case !strings.Contains(strings.Trim(destination, "/"), "/"):
			return nil, fmt.Errorf("destinationType %.100q must have a prefix, as in example.com/Ready, in line %d", destination, i+1)
		case !conditiontype.Valid(destination):
			return nil, fmt.Errorf("destinationType %.100q in line %d can't be the type of a condition: write a domain in lower case, one slash and a name, "+
				"as in example.com/Ready, at most %d characters", destination, i+1, conditiontype.MaxLength)
		}
		out = append(out, packagesv1.ConditionMapping{SourceType: source, DestinationType: destination})
	}
	return out, nil
}
