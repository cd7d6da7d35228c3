// Command crdgate splits generated CustomResourceDefinitions into sets.
//
//	crdgate FOLDER
//
// FOLDER/techpreview holds everything, as controller-gen wrote it. crdgate writes FOLDER/default without what is a preview. A kind or a field is a preview when its description holds
// "(TechPreview)". The rules of an object that mention a field which was taken out go with it.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const mark = "(TechPreview)"

// gatedValues lists values of enums that are previews, by the path of the field.
var gatedValues = map[string][]string{
	"spec.configuration.apiServer.encryption.type": {"KMS"},
	"spec.platform.type":                           {"OpenStack", "GCP"},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crdgate FOLDER")
		os.Exit(2)
	}
	if err := split(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "crdgate:", err)
		os.Exit(1)
	}
}

func split(folder string) error {
	names, err := filepath.Glob(filepath.Join(folder, "techpreview", "*.yaml"))
	if err != nil {
		return err
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(raw, &doc); err != nil {
			return fmt.Errorf("parsing %s: %w", name, err)
		}
		versions := find(find(doc.Content[0], "spec"), "versions")
		changed, preview := false, false
		for _, v := range versions.Content {
			root := find(find(v, "schema"), "openAPIV3Schema")
			preview = preview || isPreview(root)
			changed = strip(root, "") || changed
		}
		if preview {
			continue // the whole kind
		}
		out := filepath.Join(folder, "default", filepath.Base(name))
		if !changed {
			if err := os.WriteFile(out, raw, 0o644); err != nil {
				return err
			}
			continue
		}
		var buf bytes.Buffer
		buf.WriteString("---\n")
		enc := yaml.NewEncoder(&buf)
		enc.SetIndent(2)
		if err := enc.Encode(&doc); err != nil {
			return fmt.Errorf("writing %s: %w", out, err)
		}
		if err := os.WriteFile(out, buf.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// strip takes previews out of a schema and of everything below it, and says whether there were any.
func strip(schema *yaml.Node, path string) bool {
	changed := false
	if values, ok := gatedValues[path]; ok {
		if enum := find(schema, "enum"); enum != nil {
			n := len(enum.Content)
			enum.Content = slices.DeleteFunc(enum.Content, func(v *yaml.Node) bool { return slices.Contains(values, v.Value) })
			changed = changed || len(enum.Content) != n
		}
	}
	if props := find(schema, "properties"); props != nil {
		var kept []*yaml.Node
		for i := 0; i+1 < len(props.Content); i += 2 {
			name, prop := props.Content[i].Value, props.Content[i+1]
			if isPreview(prop) {
				dropRules(schema, name)
				changed = true
				continue
			}
			kept = append(kept, props.Content[i], prop)
			changed = strip(prop, strings.TrimPrefix(path+"."+name, ".")) || changed
		}
		props.Content = kept
	}
	for _, below := range []string{"items", "additionalProperties"} {
		if s := find(schema, below); s != nil && s.Kind == yaml.MappingNode {
			changed = strip(s, path+"[]") || changed
		}
	}
	return changed
}

// dropRules removes the rules of an object that mention a field of it.
func dropRules(schema *yaml.Node, field string) {
	const key = "x-kubernetes-validations"
	rules := find(schema, key)
	if rules == nil {
		return
	}
	mention := regexp.MustCompile(`\b(self|oldSelf)\.` + regexp.QuoteMeta(field) + `\b`)
	rules.Content = slices.DeleteFunc(rules.Content, func(r *yaml.Node) bool { return mention.MatchString(find(r, "rule").Value) })
	if len(rules.Content) > 0 {
		return
	}
	for i := 0; i+1 < len(schema.Content); i += 2 {
		if schema.Content[i].Value == key {
			schema.Content = slices.Delete(schema.Content, i, i+2)
			return
		}
	}
}

func isPreview(schema *yaml.Node) bool {
	description := find(schema, "description")
	return description != nil && strings.Contains(description.Value, mark)
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
