// Command crdgen makes the private twins of Cluster API's CustomResourceDefinitions.
//
//	crdgen TARGET SOURCE…
//
// A twin has the same kinds and schemas in the group that σ gives, with short names and a category of its own, so that a platform
// administrator's `kubectl get md` stays what it was. Labels are copied as they are: their keys name a contract, not a group.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/capigroup/translate"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: crdgen TARGET SOURCE…")
		os.Exit(2)
	}
	for _, source := range os.Args[2:] {
		if err := generate(os.Args[1], source); err != nil {
			fmt.Fprintf(os.Stderr, "crdgen: %s: %v\n", source, err)
			os.Exit(1)
		}
	}
}

func generate(target, source string) error {
	raw, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("reading definition: %w", err)
	}
	name, out, err := twin(raw)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(target, name), out, 0o644); err != nil {
		return fmt.Errorf("writing twin: %w", err)
	}
	return nil
}

// definition is what of a CustomResourceDefinition is looked at; the rest is carried along.
type definition struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group string
		Names struct {
			Plural                 string
			ShortNames, Categories []string
		}
	}
}

// twin returns the private definition and the name of its file.
func twin(raw []byte) (name string, out []byte, err error) {
	var before definition
	var all map[string]any
	if err := yaml.Unmarshal(raw, &before); err != nil {
		return "", nil, fmt.Errorf("parsing definition: %w", err)
	}
	if err := yaml.Unmarshal(raw, &all, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }); err != nil {
		return "", nil, fmt.Errorf("parsing definition: %w", err)
	}
	spec, _ := all["spec"].(map[string]any)
	metadata, _ := all["metadata"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group := translate.Group(before.Spec.Group)
	if group == before.Spec.Group || names == nil || metadata == nil {
		return "", nil, fmt.Errorf("group %q is none of Cluster API's", before.Spec.Group)
	}
	if err := literals(spec["versions"], "spec.versions"); err != nil {
		return "", nil, err
	}
	spec["group"], metadata["name"] = group, before.Spec.Names.Plural+"."+group
	for field, values := range map[string][]string{"shortNames": before.Spec.Names.ShortNames, "categories": before.Spec.Names.Categories} {
		var renamed []any
		for _, v := range values {
			to := translate.ShortName(v)
			if to == v {
				return "", nil, fmt.Errorf("spec.names.%s: the translation doesn't know %q; add it there, or the twin would be shown in place of the platform's", field, v)
			}
			renamed = append(renamed, to)
		}
		if renamed != nil {
			names[field] = renamed
		}
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		delete(annotations, "cert-manager.io/inject-ca-from")
	}
	out, err = yaml.Marshal(all)
	if err != nil {
		return "", nil, fmt.Errorf("printing twin: %w", err)
	}
	return group + "_" + before.Spec.Names.Plural + ".yaml", append([]byte("---\n"), out...), nil
}

// literals refuses a schema with a rule that spells out a group: somebody has to think about that one. Descriptions and messages are text.
func literals(v any, at string) error {
	var errs []error
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if _, text := value.(string); text && (key == "description" || key == "message" || key == "deprecationWarning") {
				continue
			}
			if translate.Needles([]byte(key)) {
				errs = append(errs, fmt.Errorf("%s has the key %q", at, key))
			}
			errs = append(errs, literals(value, at+"."+key))
		}
	case []any:
		for i, value := range v {
			errs = append(errs, literals(value, fmt.Sprintf("%s[%d]", at, i)))
		}
	case string:
		if translate.Needles([]byte(v)) && !strings.HasPrefix(v, ".metadata.") {
			errs = append(errs, fmt.Errorf("%s spells out a group: %q", at, v))
		}
	}
	return errors.Join(errs...)
}
