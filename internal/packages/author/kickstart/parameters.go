package kickstart

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// parameters collects what is made a parameter of, as a schema with defaults.
type parameters struct {
	chosen     []string
	properties map[string]any
	marks      []string
}

func newParameters(chosen []string) *parameters {
	return &parameters{chosen: chosen, properties: map[string]any{}}
}

func (p *parameters) has(name string) bool { return slices.Contains(p.chosen, name) }

// schema is nil without parameters.
func (p *parameters) schema() map[string]any {
	if len(p.properties) == 0 {
		return nil
	}
	return map[string]any{"type": "object", "properties": p.properties, "default": map[string]any{}}
}

// word makes a name usable as a property without quotes.
var word = regexp.MustCompile(`[^A-Za-z0-9]+`)

func property(parts ...string) string {
	out := ""
	for _, part := range parts {
		for _, piece := range strings.Split(word.ReplaceAllString(part, " "), " ") {
			if piece == "" {
				continue
			}
			if out == "" {
				out = strings.ToLower(piece[:1]) + piece[1:]
			} else {
				out += strings.ToUpper(piece[:1]) + piece[1:]
			}
		}
	}
	return out
}

// add declares a parameter and returns the mark that stands for it in YAML.
func (p *parameters) add(name string, kind string, value any, action string) string {
	field := map[string]any{"type": kind, "default": value}
	if kind != "string" && kind != "integer" {
		field["x-kubernetes-preserve-unknown-fields"] = true
	}
	if kind == "array" {
		delete(field, "x-kubernetes-preserve-unknown-fields")
		field["items"] = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
	p.properties[name] = field
	return p.mark(action)
}

func (p *parameters) mark(action string) string {
	p.marks = append(p.marks, action)
	return fmt.Sprintf("KICKSTARTMARK%dX", len(p.marks)-1)
}

// marked finds marks, with the quotes that YAML may have put around.
var marked = regexp.MustCompile(`'?KICKSTARTMARK(\d+)X'?`)

// render gives the text of an object, and whether it is a template.
func (p *parameters) render(obj *unstructured.Unstructured) (text []byte, templated bool, err error) {
	p.namespaces(obj)
	p.workload(obj)
	raw, err := yaml.Marshal(obj.Object)
	if err != nil {
		return nil, false, err
	}
	if !marked.Match(raw) {
		return raw, false, nil
	}
	// Braces of the object itself are text, not actions.
	escaped := strings.ReplaceAll(string(raw), "{{", `{{"{{"}}`)
	out := marked.ReplaceAllStringFunc(escaped, func(found string) string {
		var i int
		if _, err := fmt.Sscanf(strings.Trim(found, "'"), "KICKSTARTMARK%dX", &i); err != nil || i >= len(p.marks) {
			return found
		}
		return p.marks[i]
	})
	return []byte(out), true, nil
}

func (p *parameters) namespaces(obj *unstructured.Unstructured) {
	if !p.has("namespaces") {
		return
	}
	replace := func(ns string) string {
		p.properties["namespace"] = map[string]any{"type": "string", "default": ""}
		all, _ := p.properties["namespaces"].(map[string]any)
		if all == nil {
			all = map[string]any{"type": "object", "default": map[string]any{}, "properties": map[string]any{}}
			p.properties["namespaces"] = all
		}
		all["properties"].(map[string]any)[property(ns)] = map[string]any{"type": "string", "default": ns}
		return p.mark(fmt.Sprintf(`{{ default .config.namespaces.%s .config.namespace | quote }}`, property(ns)))
	}
	if ns := obj.GetNamespace(); ns != "" {
		obj.SetNamespace(replace(ns))
	}
	if obj.GetKind() == "Namespace" {
		obj.SetName(replace(obj.GetName()))
	}
	subjects, _ := obj.Object["subjects"].([]any)
	for _, s := range subjects {
		if m, ok := s.(map[string]any); ok {
			if ns, ok := m["namespace"].(string); ok && ns != "" {
				m["namespace"] = replace(ns)
			}
		}
	}
}

// workload makes parameters of what kinds with a pod template have.
func (p *parameters) workload(obj *unstructured.Unstructured) {
	spec, _ := obj.Object["spec"].(map[string]any)
	template, _, _ := unstructured.NestedMap(obj.Object, "spec", "template", "spec")
	if spec == nil || template == nil {
		return
	}
	name := property(obj.GetName())
	if replicas, ok := spec["replicas"]; ok && p.has("replicas") {
		field := property(obj.GetName(), "replicas")
		spec["replicas"] = p.add(field, "integer", replicas, "{{ .config."+field+" }}")
	}
	for _, each := range []struct{ parameter, field, kind string }{
		{"tolerations", "tolerations", "array"}, {"nodeselectors", "nodeSelector", "object"},
	} {
		if !p.has(each.parameter) {
			continue
		}
		value, ok := template[each.field]
		if !ok {
			if value = any([]any{}); each.kind == "object" {
				value = map[string]any{}
			}
		}
		field := property(obj.GetName(), each.field)
		template[each.field] = p.add(field, each.kind, value, "{{ .config."+field+" | toJson }}")
	}
	containers, _ := template["containers"].([]any)
	for _, c := range containers {
		if m, ok := c.(map[string]any); ok {
			p.container(name, m)
		}
	}
	_ = unstructured.SetNestedMap(obj.Object, template, "spec", "template", "spec") // it was there
}

func (p *parameters) container(owner string, c map[string]any) {
	name, _ := c["name"].(string)
	if image, ok := c["image"].(string); ok && p.has("images") {
		field := property(owner, name, "image")
		c["image"] = p.add(field, "string", image, "{{ .config."+field+" | quote }}")
	}
	if p.has("resources") {
		value, ok := c["resources"].(map[string]any)
		if !ok {
			value = map[string]any{}
		}
		field := property(owner, name, "resources")
		c["resources"] = p.add(field, "object", value, "{{ .config."+field+" | toJson }}")
	}
	if p.has("env") {
		value, ok := c["env"].([]any)
		if !ok {
			value = []any{}
		}
		field := property(owner, name, "env")
		c["env"] = p.add(field, "array", value, "{{ .config."+field+" | toJson }}")
	}
}
