package openshift

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

//go:embed assets
var assets embed.FS

// load gives fresh objects of an asset, in its order. It panics when the asset is broken, which any test of it finds.
func load(name string) []*unstructured.Unstructured {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err)
	}
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		raw, convertErr := yaml.YAMLToJSON(document)
		u := &unstructured.Unstructured{}
		if err := errors.Join(err, convertErr); err != nil {
			panic(fmt.Sprintf("asset %s: %v", name, err))
		}
		if err := u.UnmarshalJSON(raw); err != nil {
			panic(fmt.Sprintf("asset %s: %v", name, err))
		}
		objects = append(objects, u)
	}
}

// find gives the object of a kind among those of an asset, which has one of each that code changes.
func find(objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	for _, o := range objects {
		if o.GetKind() == kind {
			return o
		}
	}
	panic("no " + kind + " in the asset")
}

func yamlText(value any) (string, error) {
	raw, err := yaml.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding YAML: %w", err)
	}
	return string(raw), nil
}
