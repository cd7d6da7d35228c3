package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
)

// Set are parsed probes. The zero Set passes everything.
type Set struct{ entries []entry }

type entry struct {
	kind     schema.GroupKind
	selector labels.Selector // nil: all
	checks   []check
}

// check returns what is wrong with an object, "" when nothing is.
type check func(ctx context.Context, obj *unstructured.Unstructured) string

// Parse prepares probes for use. Errors name the probe by its place, and say that its rule or selector is none.
func Parse(specs []v1alpha1.ObjectSetProbe) (Set, error) {
	set := Set{}
	for i, spec := range specs {
		e := entry{}
		if spec.Selector.Kind != nil {
			e.kind = schema.GroupKind{Group: spec.Selector.Kind.Group, Kind: spec.Selector.Kind.Kind}
		}
		if spec.Selector.Selector != nil {
			selector, err := metav1.LabelSelectorAsSelector(spec.Selector.Selector)
			if err != nil {
				return Set{}, fmt.Errorf("availabilityProbes[%d].selector.selector: %w", i, err)
			}
			e.selector = selector
		}
		for j, p := range spec.Probes {
			c, err := parse(p)
			if err != nil {
				return Set{}, fmt.Errorf("availabilityProbes[%d].probes[%d]: %w", i, j, err)
			}
			if c != nil {
				e.checks = append(e.checks, c)
			}
		}
		set.entries = append(set.entries, e)
	}
	return set, nil
}

// parse returns nil for a probe of no known type. When a probe has several, the first in this order counts.
func parse(p v1alpha1.Probe) (check, error) {
	switch {
	case p.FieldsEqual != nil:
		return fieldsEqual(*p.FieldsEqual), nil
	case p.Condition != nil:
		return condition(*p.Condition), nil
	case p.CEL != nil:
		return rule(*p.CEL)
	}
	return nil, nil
}

// Selects says whether any probe looks at objects of this kind with these labels.
func (s Set) Selects(kind schema.GroupKind, objLabels map[string]string) bool {
	for _, e := range s.entries {
		if e.selects(kind, objLabels) {
			return true
		}
	}
	return false
}

func (e entry) selects(kind schema.GroupKind, objLabels map[string]string) bool {
	return e.kind == kind && (e.selector == nil || e.selector.Matches(labels.Set(objLabels)))
}

// Check returns what is wrong with an object; nothing when it passes.
func (s Set) Check(ctx context.Context, obj *unstructured.Unstructured) []string {
	var failures []string
	for _, e := range s.entries {
		if !e.selects(obj.GroupVersionKind().GroupKind(), obj.GetLabels()) {
			continue
		}
		if outdated(obj) {
			failures = append(failures, ".status outdated")
			continue
		}
		for _, c := range e.checks {
			if failure := c(ctx, obj); failure != "" {
				failures = append(failures, failure)
			}
		}
	}
	return failures
}

// outdated says whether the object's controller has not seen the latest change yet.
func outdated(obj *unstructured.Unstructured) bool {
	observed, found, err := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	return err == nil && found && observed != obj.GetGeneration()
}

func condition(spec v1alpha1.ProbeConditionSpec) check {
	return func(_ context.Context, obj *unstructured.Unstructured) string {
		raw, found, err := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
		if !found {
			return "missing .status.conditions"
		}
		list, ok := raw.([]any)
		if err != nil || !ok {
			return "malformed .status.conditions"
		}
		for _, item := range list {
			c, ok := item.(map[string]any)
			if !ok {
				return "malformed .status.conditions"
			}
			if c["type"] != spec.Type {
				continue
			}
			if generation, found, err := unstructured.NestedInt64(c, "observedGeneration"); err == nil && found && generation != obj.GetGeneration() {
				return fmt.Sprintf(".status.condition[%q] outdated", spec.Type)
			}
			if c["status"] == spec.Status {
				return ""
			}
			return fmt.Sprintf(".status.condition[%q] is %v", spec.Type, c["status"])
		}
		return fmt.Sprintf("missing .status.condition[%q]", spec.Type)
	}
}

func fieldsEqual(spec v1alpha1.ProbeFieldsEqualSpec) check {
	path := func(p string) []string { return strings.Split(strings.Trim(p, "."), ".") }
	a, b := path(spec.FieldA), path(spec.FieldB)
	return func(_ context.Context, obj *unstructured.Unstructured) string {
		valueA, found, err := unstructured.NestedFieldNoCopy(obj.Object, a...)
		if err != nil || !found {
			return fmt.Sprintf("%q missing", spec.FieldA)
		}
		valueB, found, err := unstructured.NestedFieldNoCopy(obj.Object, b...)
		if err != nil || !found {
			return fmt.Sprintf("%q missing", spec.FieldB)
		}
		if equality.Semantic.DeepEqual(valueA, valueB) {
			return ""
		}
		return fmt.Sprintf("%q != %q expected: %s got: %s", spec.FieldA, spec.FieldB, asJSON(valueA), asJSON(valueB))
	}
}

// maxValue bounds how much of a field's value goes into a message.
const maxValue = 1024

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return clip.Over(string(text), maxValue, "…")
}
