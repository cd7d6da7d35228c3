// Command capicrds copies the CustomResourceDefinitions of Cluster API as they are served here.
//
//	capicrds SOURCE TARGET
//
// SOURCE is the folder config/crd/bases of Cluster API's module. Of each kind only the storage version is kept: the others need a
// conversion webhook. Each is labelled with the contract that it fulfils, as Cluster API's own installation does.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: capicrds SOURCE TARGET")
		os.Exit(2)
	}
	if err := copyAll(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "capicrds:", err)
		os.Exit(1)
	}
}

func copyAll(source, target string) error {
	names, err := filepath.Glob(filepath.Join(source, "*.yaml"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s holds no definitions; is it config/crd/bases of the module?", source)
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		out, err := convert(raw)
		if err != nil {
			return fmt.Errorf("converting %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(target, filepath.Base(name)), out, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// convert keeps the storage version alone, and adds the label of the contract.
func convert(raw []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	root := doc.Content[0]
	versions := find(find(root, "spec"), "versions")
	if versions == nil {
		return nil, fmt.Errorf("it has no spec.versions")
	}
	versions.Content = slices.DeleteFunc(versions.Content, func(v *yaml.Node) bool {
		storage := find(v, "storage")
		return storage == nil || storage.Value != "true"
	})
	if len(versions.Content) != 1 {
		return nil, fmt.Errorf("it has %d storage versions", len(versions.Content))
	}
	version := find(versions.Content[0], "name").Value
	label := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }
	metadata := find(root, "metadata")
	metadata.Content = append([]*yaml.Node{
		label("labels"), {Kind: yaml.MappingNode, Content: []*yaml.Node{
			label("cluster.x-k8s.io/provider"), label("cluster-api"),
			label("cluster.x-k8s.io/v1beta2"), label(version),
		}},
	}, metadata.Content...)

	var buf bytes.Buffer
	buf.WriteString("---\n")
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// find returns the value of a key of a mapping, or nil.
func find(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
