package hostedclusterpackage

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// ownMetadata are the labels and annotations that a Package has from us, as the API server remembers: by name, with nothing of interest below.
type ownMetadata struct {
	Labels      map[string]json.RawMessage `json:"f:labels,omitempty"`
	Annotations map[string]json.RawMessage `json:"f:annotations,omitempty"`
}

// ownFields are managed fields as far as they are about labels and annotations.
type ownFields struct {
	Metadata ownMetadata `json:"f:metadata"`
}

func ownOf(entry *metav1.ManagedFieldsEntry) ownMetadata {
	own := ownFields{}
	if entry == nil || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &own) != nil {
		return ownMetadata{}
	}
	return own.Metadata
}

// Remembered is what a cache must keep of a Package's managed fields: when we last changed it, and which labels and annotations are ours.
func Remembered(p metav1.Object) []metav1.ManagedFieldsEntry {
	entry := Entry(p)
	if entry == nil {
		return nil
	}
	kept := metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation, Time: entry.Time}
	if own := ownOf(entry); len(own.Labels)+len(own.Annotations) > 0 {
		if data, err := json.Marshal(ownFields{own}); err == nil {
			kept.FieldsV1 = metav1.NewFieldsV1(string(data))
		}
	}
	return []metav1.ManagedFieldsEntry{kept}
}

// hasLeftovers tells that a Package has labels or annotations from us that the template does not have, or not any more. What others have set counts for
// nothing, and neither does what rollouts set and take back themselves.
func hasLeftovers(p metav1.Object, t template) bool {
	own := ownOf(Entry(p))
	return beyond(own.Labels, t.Labels) || beyond(own.Annotations, t.Annotations, packagesv1.RolloutReturnedAnnotation, packagesv1.RolloutEnvironmentAnnotation)
}

// beyond tells that fields name one that is neither wanted nor among others.
func beyond(fields map[string]json.RawMessage, wanted map[string]string, others ...string) bool {
	for field := range fields {
		name, isName := strings.CutPrefix(field, "f:")
		if _, want := wanted[name]; isName && !want && !slices.Contains(others, name) {
			return true
		}
	}
	return false
}
