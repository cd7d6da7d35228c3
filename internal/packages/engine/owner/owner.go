// Package owner keeps who owns an object: in owner references, or in an annotation where references can't reach, which is from
// another cluster.
package owner

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"hcp.internal/api/packages/v1alpha1"
)

// Entry is an owner of an object.
type Entry struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	Namespace  string    `json:"namespace,omitempty"`
	UID        types.UID `json:"uid"`
	// Controller is true for at most one owner of an object.
	Controller bool `json:"controller,omitempty"`

	// reference is what the entry was read from; nil when it was not an owner reference.
	reference *metav1.OwnerReference
}

// Same says whether two entries are the same owner, whatever role it has.
func (e Entry) Same(other Entry) bool {
	return e.UID == other.UID && e.Kind == other.Kind && e.Name == other.Name && e.group() == other.group()
}

func (e Entry) group() string {
	gv, err := schema.ParseGroupVersion(e.APIVersion)
	if err != nil {
		return e.APIVersion
	}
	return gv.Group
}

// GroupKind of the owner.
func (e Entry) GroupKind() schema.GroupKind { return schema.GroupKind{Group: e.group(), Kind: e.Kind} }

// Strategy reads and writes the owners of an object.
type Strategy interface {
	// Read returns the owners of an object. An error means that what is written there can't be understood.
	Read(obj metav1.Object) ([]Entry, error)
	// Write replaces the owners of an object.
	Write(obj *unstructured.Unstructured, owners []Entry) error
	// Patch is the part of a merge patch that replaces the owners of an object.
	Patch(owners []Entry) (map[string]any, error)
}

// Controller returns the controller among owners, nil when there is none.
func Controller(owners []Entry) *Entry {
	if i := slices.IndexFunc(owners, func(e Entry) bool { return e.Controller }); i >= 0 {
		return &owners[i]
	}
	return nil
}

// Has says whether an owner is among owners.
func Has(owners []Entry, e Entry) bool { return slices.ContainsFunc(owners, e.Same) }

// Adopt returns owners with e as the controller; the others stay, none of them as the controller.
func Adopt(owners []Entry, e Entry) []Entry {
	out := make([]Entry, 0, len(owners)+1)
	found := false
	for _, o := range owners {
		o.Controller = o.Same(e)
		found = found || o.Controller
		out = append(out, o)
	}
	if !found {
		e.Controller = true
		out = append(out, e)
	}
	return out
}

// Remove returns owners without e.
func Remove(owners []Entry, e Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(owners), e.Same)
}

// References keeps owners in metadata.ownerReferences.
type References struct{}

// Read implements Strategy; it never fails.
func (References) Read(obj metav1.Object) ([]Entry, error) {
	refs := obj.GetOwnerReferences()
	out := make([]Entry, len(refs))
	for i, ref := range refs {
		out[i] = Entry{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, Controller: ref.Controller != nil && *ref.Controller,
			reference: &ref,
		}
	}
	return out, nil
}

func references(owners []Entry) []metav1.OwnerReference {
	refs := make([]metav1.OwnerReference, len(owners))
	for i, e := range owners {
		if e.reference != nil {
			refs[i] = *e.reference
		} else {
			block := true
			refs[i] = metav1.OwnerReference{APIVersion: e.APIVersion, Kind: e.Kind, Name: e.Name, UID: e.UID, BlockOwnerDeletion: &block}
		}
		if controller := e.Controller; controller || refs[i].Controller != nil {
			refs[i].Controller = &controller
		}
	}
	return refs
}

// Write implements Strategy.
func (References) Write(obj *unstructured.Unstructured, owners []Entry) error {
	obj.SetOwnerReferences(references(owners))
	return nil
}

// Patch implements Strategy.
func (References) Patch(owners []Entry) (map[string]any, error) {
	return map[string]any{"ownerReferences": references(owners)}, nil
}

// Annotation keeps owners in the annotation package-operator.run/owners, as JSON.
type Annotation struct{}

// maxAnnotation bounds what is parsed: Kubernetes allows 256 KiB for all annotations of an object.
const maxAnnotation = 256 << 10

// maxEntries bounds the owners of an object; one for each revision that is kept is the usual number.
const maxEntries = 1000

var errTwoControllers = errors.New("more than one controller")

// Read implements Strategy. It fails when the annotation is malformed, too large, or names two controllers.
func (Annotation) Read(obj metav1.Object) ([]Entry, error) {
	text, ok := obj.GetAnnotations()[v1alpha1.OwnersAnnotation]
	if !ok || text == "" {
		return nil, nil
	}
	if len(text) > maxAnnotation {
		return nil, fmt.Errorf("annotation %s: longer than %d bytes", v1alpha1.OwnersAnnotation, maxAnnotation)
	}
	var out []Entry
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", v1alpha1.OwnersAnnotation, err)
	}
	if len(out) > maxEntries {
		return nil, fmt.Errorf("annotation %s: more than %d owners", v1alpha1.OwnersAnnotation, maxEntries)
	}
	controllers := 0
	for _, e := range out {
		if e.Controller {
			controllers++
		}
	}
	if controllers > 1 {
		return nil, fmt.Errorf("annotation %s: %w", v1alpha1.OwnersAnnotation, errTwoControllers)
	}
	return out, nil
}

func encode(owners []Entry) (string, error) {
	if owners == nil {
		owners = []Entry{}
	}
	text, err := json.Marshal(owners)
	if err != nil {
		return "", fmt.Errorf("encoding owners: %w", err)
	}
	return string(text), nil
}

// Write implements Strategy.
func (Annotation) Write(obj *unstructured.Unstructured, owners []Entry) error {
	text, err := encode(owners)
	if err != nil {
		return err
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.OwnersAnnotation] = text
	obj.SetAnnotations(annotations)
	return nil
}

// Patch implements Strategy.
func (Annotation) Patch(owners []Entry) (map[string]any, error) {
	text, err := encode(owners)
	if err != nil {
		return nil, err
	}
	return map[string]any{"annotations": map[string]any{v1alpha1.OwnersAnnotation: text}}, nil
}
