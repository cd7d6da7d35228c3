package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"hcp.internal/api/packages/v1alpha1"
)

// relaxed are paths with or without braces and leading dot.
var relaxed = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

// pathOf writes a path the way that the library wants it: {.a.b}.
func pathOf(text string) (string, error) {
	if m := relaxed.FindStringSubmatch(text); m != nil {
		return "{." + m[1] + m[2] + "}", nil
	}
	return "", fmt.Errorf("unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}': %q", text)
}

// copyItems takes the values of a source into config.
func copyItems(items []v1alpha1.ObjectTemplateSourceItem, source *unstructured.Unstructured, config map[string]any) error {
	for _, item := range items {
		value, err := valueAt(item.Key, source)
		if err != nil {
			return fmt.Errorf("key %s: %w", item.Key, err)
		}
		rest, ok := strings.CutPrefix(item.Destination, ".")
		if !ok {
			return fmt.Errorf("path %s must be a JSONPath with a leading dot", item.Destination)
		}
		if err := unstructured.SetNestedField(config, value, strings.Split(rest, ".")...); err != nil {
			return fmt.Errorf("destination %s: %w", item.Destination, err)
		}
	}
	return nil
}

func valueAt(key string, source *unstructured.Unstructured) (any, error) {
	path, err := pathOf(key)
	if err != nil {
		return nil, err
	}
	p := jsonpath.New("key")
	if err := p.Parse(path); err != nil {
		return nil, err
	}
	p.EnableJSONOutput(true)
	out := &bytes.Buffer{}
	if err := p.Execute(out, source.Object); err != nil {
		return nil, err
	}
	var values []any
	decoder := json.NewDecoder(out)
	if err := decoder.Decode(&values); err != nil {
		return nil, fmt.Errorf("reading what it gives: %w", err)
	}
	if len(values) == 1 {
		return values[0], nil
	}
	return values, nil
}
