// Command capicrds copies the CustomResourceDefinitions of Cluster API as they are served here.
//
//	capicrds SOURCE TARGET
//
// SOURCE is the folder config/crd/bases of Cluster API's module. Versions that are neither stored nor the latest before the stored one
// are left out: nobody here ever used them. Each definition is labelled with the contracts that it fulfils, as Cluster API's own
// installation does, and says nothing about conversion: whoever installs it does.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// contracts are versions of Cluster API's contract. They are called like the versions of its own kinds that fulfil them.
var contracts = []string{"v1beta1", "v1beta2"}

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

// convert keeps the two last versions, and adds the labels of contracts.
func convert(raw []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	root := doc.Content[0]
	versions := find(find(root, "spec"), "versions")
	if versions == nil || len(versions.Content) == 0 {
		return nil, fmt.Errorf("it has no spec.versions")
	}
	last := len(versions.Content) - 1
	if storage := find(versions.Content[last], "storage"); storage == nil || storage.Value != "true" {
		return nil, fmt.Errorf("its last version is not the stored one")
	}
	versions.Content = versions.Content[max(0, last-1):]
	label := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }
	labels := []*yaml.Node{label("cluster.x-k8s.io/provider"), label("cluster-api")}
	for _, v := range versions.Content {
		if version := find(v, "name").Value; slices.Contains(contracts, version) {
			labels = append(labels, label("cluster.x-k8s.io/"+version), label(version))
		}
	}
	metadata := find(root, "metadata")
	metadata.Content = append([]*yaml.Node{label("labels"), {Kind: yaml.MappingNode, Content: labels}}, metadata.Content...)

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
