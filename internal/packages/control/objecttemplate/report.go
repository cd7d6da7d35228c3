package objecttemplate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/conditiontype"
	"hcp.internal/platform/internal/packages/engine/phase"
)

// conditionsOf are the conditions of an object that are about its present state, without those of types that no status accepts.
func conditionsOf(obj *unstructured.Unstructured) []metav1.Condition {
	if observed, found, err := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); err == nil && found && observed != obj.GetGeneration() {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var out []metav1.Condition
	for _, item := range list {
		c, ok := item.(map[string]any)
		if !ok {
			continue
		}
		generation, found, _ := unstructured.NestedInt64(c, "observedGeneration")
		text := func(field string) string { s, _, _ := unstructured.NestedString(c, field); return s }
		if (found && generation != 0 && generation != obj.GetGeneration()) || !conditiontype.Valid(text("type")) || text("type") == v1alpha1.ConditionTemplateInvalid {
			continue
		}
		out = append(out, phase.Condition(text("type"), metav1.ConditionStatus(text("status")), text("reason"), text("message")))
	}
	return out
}
