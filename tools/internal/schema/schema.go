package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// definition is what matters of a CustomResourceDefinition.
type definition struct {
	Metadata struct{ Name string }
	Spec     struct {
		Scope string
		Names struct {
			Kind       string
			ShortNames []string `yaml:"shortNames"`
			Categories []string
		}
		Versions []version
	}
}

type version struct {
	Name            string
	Served, Storage bool
	Subresources    map[string]any
	PrinterColumns  []column `yaml:"additionalPrinterColumns"`
	Schema          struct {
		Root map[string]any `yaml:"openAPIV3Schema"`
	}
}

type column struct {
	Name, Type, JSONPath string
	Priority             int
}

func (c *column) UnmarshalYAML(node *yaml.Node) error {
	raw := struct {
		Name, Type string
		JSONPath   string `yaml:"jsonPath"`
		Priority   int
	}{}
	err := node.Decode(&raw)
	*c = column(raw)
	return err
}

// ReadDefinitions reads the CustomResourceDefinitions of a folder and adds them, by name, to into.
func ReadDefinitions(folder string, into map[string]Kind) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var d definition
		if err := yaml.Unmarshal(raw, &d); err != nil {
			return fmt.Errorf("parsing %s: %w", file, err)
		}
		into[d.Metadata.Name] = describe(d)
	}
	return nil
}

// describe says about a definition what a table would. The tables have kinds with one version only.
func describe(d definition) Kind {
	v := d.Spec.Versions[len(d.Spec.Versions)-1]
	about := Facts{"kind": d.Spec.Names.Kind, "scope": d.Spec.Scope, "version": v.Name, "served": title(v.Served), "storage": title(v.Storage)}
	list(about, "short", d.Spec.Names.ShortNames)
	list(about, "categories", d.Spec.Names.Categories)
	subresources := make([]string, 0, len(v.Subresources))
	for name := range v.Subresources {
		subresources = append(subresources, name)
	}
	slices.Sort(subresources)
	list(about, "subresources", subresources)
	for i, c := range v.PrinterColumns {
		about[fmt.Sprintf("column %02d", i+1)] = fmt.Sprintf("%s %s %s priority=%d", c.Name, c.Type, c.JSONPath, c.Priority)
	}
	k := Kind{"": about}
	properties(v.Schema.Root, "", k)
	delete(k, "apiVersion")
	delete(k, "kind")
	delete(k, "metadata")
	return k
}

func title(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func list(about Facts, name string, values []string) {
	if len(values) > 0 {
		about[name] = strings.Join(values, ",")
	}
}

// properties describes the fields of an object, and what is below them.
func properties(schema map[string]any, path string, into Kind) {
	required, _ := schema["required"].([]any)
	props, _ := schema["properties"].(map[string]any)
	for name, p := range props {
		prop, ok := p.(map[string]any)
		if !ok {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		f := Facts{"type": typeOf(prop)}
		if slices.Contains(required, any(name)) {
			f["required"] = "true"
		}
		own(prop, "", f)
		if items, ok := below(prop); ok {
			own(items, "items:", f)
			if prop["type"] == "array" {
				properties(items, at+"[]", into)
			} else {
				properties(items, at+"{}", into)
			}
		}
		into[at] = f
		properties(prop, at, into)
	}
}

// below returns the schema of a list's items or a map's values.
func below(schema map[string]any) (map[string]any, bool) {
	for _, key := range []string{"items", "additionalProperties"} {
		if s, ok := schema[key].(map[string]any); ok {
			return s, true
		}
	}
	return nil, false
}

// typeOf names a type as the tables do. What may be a number or a string has none.
func typeOf(schema map[string]any) string {
	own, _ := schema["type"].(string)
	items, ok := below(schema)
	if !ok {
		return own
	}
	of, _ := items["type"].(string)
	if own == "array" {
		return "[]" + of
	}
	return "map[string]" + of
}

const (
	extension = "x-kubernetes-"
	immutable = "self == oldSelf"
)

// own adds what a schema says about itself.
func own(schema map[string]any, prefix string, into Facts) {
	for key, value := range schema {
		switch key {
		case "type", "description", "properties", "required", "items", "additionalProperties", "anyOf":
		case extension + "validations":
			rules(value, prefix, into)
		default:
			into[prefix+strings.TrimPrefix(key, extension)] = canonical(value)
		}
	}
}

// Rules is the fact that holds the texts of a field's rules. No table has it.
const Rules = "rules"

func rules(value any, prefix string, into Facts) {
	n := 0
	all, _ := value.([]any)
	texts := make([]string, 0, len(all))
	for _, r := range all {
		rule, _ := r.(map[string]any)
		text, _ := rule["rule"].(string)
		texts = append(texts, text)
		if text == immutable {
			into[prefix+"immutable"] = "true"
			continue
		}
		n++
	}
	if n > 0 {
		into[prefix+"celRules"] = fmt.Sprint(n)
	}
	if len(texts) > 0 {
		into[prefix+Rules] = canonical(texts)
	}
}
