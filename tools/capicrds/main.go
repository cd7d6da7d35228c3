// Command capicrds copies the CustomResourceDefinitions of Cluster API as they are served here.
//
//	capicrds [-provider NAME -contract VERSION -kinds KIND,…] SOURCE TARGET
//
// With -provider they are those of an infrastructure provider: only its stored version, without descriptions, which are most of their size, and with
// the label of the contract that it fulfils.
//
// SOURCE is the folder config/crd/bases of Cluster API's module. Versions that are neither stored nor the latest before the stored one
// are left out: nobody here ever used them. Each definition is labelled with the contracts that it fulfils, as Cluster API's own
// installation does, and says nothing about conversion: whoever installs it does.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// contracts are versions of Cluster API's contract. They are called like the versions of its own kinds that fulfil them.
var contracts = []string{"v1beta1", "v1beta2"}

// options say whose definitions are copied.
type options struct {
	provider, contract string
	kinds              []string // plurals; empty: all
}

func main() {
	o, kinds := options{}, ""
	flag.StringVar(&o.provider, "provider", "", "label of the provider, such as infrastructure-aws; empty: Cluster API itself")
	flag.StringVar(&o.contract, "contract", "", "version of the contract that the provider fulfils")
	flag.StringVar(&kinds, "kinds", "", "plurals of the kinds to copy, separated by commas; empty: all")
	flag.Parse()
	if kinds != "" {
		o.kinds = strings.Split(kinds, ",")
	}
	if flag.NArg() != 2 || (o.provider == "") != (o.contract == "") {
		fmt.Fprintln(os.Stderr, "usage: capicrds [-provider NAME -contract VERSION -kinds KIND,…] SOURCE TARGET")
		os.Exit(2)
	}
	if err := o.copyAll(flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "capicrds:", err)
		os.Exit(1)
	}
}

func (o options) copyAll(source, target string) error {
	names, err := filepath.Glob(filepath.Join(source, "*.yaml"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s holds no definitions; is it config/crd/bases of the module?", source)
	}
	for _, name := range names {
		_, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".yaml"), "_")
		if len(o.kinds) > 0 && !slices.Contains(o.kinds, plural) {
			continue
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		out, err := o.convert(raw)
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
func (o options) convert(raw []byte) ([]byte, error) {
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
	keep, provider := 2, "cluster-api"
	if o.provider != "" {
		keep, provider = 1, o.provider
		bare(versions)
	}
	versions.Content = versions.Content[max(0, last-keep+1):]
	label := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }
	labels := []*yaml.Node{label("cluster.x-k8s.io/provider"), label(provider)}
	for _, v := range versions.Content {
		version := find(v, "name").Value
		if o.provider != "" {
			labels = append(labels, label("cluster.x-k8s.io/"+o.contract), label(version))
		} else if slices.Contains(contracts, version) {
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

// bare removes the descriptions of a schema; one that is the name of a property stays.
func bare(node *yaml.Node) {
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); {
			if node.Content[i].Value == "description" && node.Content[i+1].Kind == yaml.ScalarNode {
				node.Content = slices.Delete(node.Content, i, i+2)
				continue
			}
			i += 2
		}
	}
	for _, child := range node.Content {
		bare(child)
	}
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
