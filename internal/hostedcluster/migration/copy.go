package migration

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"hcp.internal/platform/internal/capigroup/translate"
)

// Annotations of objects of Cluster API while they are moved.
const (
	// pausedValue is the value of Cluster API's annotation that marks a pause of ours; with any other value it stays what it is.
	pausedValue = "private-capi-migration"
	// copyAnnotation says how far a copy is, and that it is one: copyCreated or copyWhole.
	copyAnnotation = "hypershift.openshift.io/migration-copy"
	copyCreated    = "created"
	copyWhole      = "whole"
	// createdAnnotation is the creationTimestamp of the object that this one was made from at first.
	createdAnnotation = "hypershift.openshift.io/original-creation-timestamp"
)

// fieldOwner is what writes of this package are known as in managed fields.
const fieldOwner = "hypershift-migration"

// ID names an object in both groups: Group is the standard one.
type ID struct {
	Group, Kind, Name string
}

func (id ID) String() string { return id.Kind + " " + id.Name }

// Object is one of Cluster API's, as it is stored.
type Object struct {
	*unstructured.Unstructured
	Resource schema.GroupVersionResource
}

// ID is the same for an object and its copy.
func (o Object) ID() ID {
	gvk := o.GroupVersionKind()
	return ID{standard(gvk.Group), gvk.Kind, o.GetName()}
}

func standard(group string) string {
	if translate.IsPrivate(group) {
		return translate.Group(group)
	}
	return group
}

func (o Object) paused() (ours, any bool) {
	v, any := o.GetAnnotations()[clusterv1.PausedAnnotation]
	return any && v == pausedValue, any
}

func (o Object) deleting() bool { return o.GetDeletionTimestamp() != nil }

// whole tells that o is a copy to which nothing is missing.
func (o Object) whole() bool { return o.GetAnnotations()[copyAnnotation] == copyWhole }

// isCopy tells that o was made by a move.
func (o Object) isCopy() bool { return o.GetAnnotations()[copyAnnotation] != "" }

// renamed is an object under the names of the other group: its kind, what it refers to, its managed fields.
func renamed(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	group := o.GroupVersionKind().Group
	if !translate.InDomain(group) {
		return nil, fmt.Errorf("group %q is none of Cluster API's", group)
	}
	r, err := translate.Parse(http.MethodPut, "/apis/"+group+"/v1/namespaces/n/objects/o", "")
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	if raw, err = translate.Bytes(r.Body(), nil, raw); err != nil {
		return nil, fmt.Errorf("renaming groups of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(raw)
}

// copyOf is the copy of an object: all of it under the other names, its owners those that uids names for the owners of the object. An owner
// outside of uids stays. What a server gives each object is missing; status and managed fields are there and have to be written by requests of
// their own.
func copyOf(o Object, uids map[types.UID]types.UID) (*unstructured.Unstructured, error) {
	c, err := renamed(o.Unstructured)
	if err != nil {
		return nil, err
	}
	created := o.GetAnnotations()[createdAnnotation]
	if created == "" {
		created = o.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z")
	}
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(c.Object, "metadata", field)
	}
	annotations := c.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[copyAnnotation], annotations[createdAnnotation] = copyCreated, created
	c.SetAnnotations(annotations)
	owners := c.GetOwnerReferences()
	for i := range owners {
		if uid, moved := uids[owners[i].UID]; moved {
			owners[i].UID = uid
		}
	}
	c.SetOwnerReferences(owners)
	if len(owners) == 0 {
		unstructured.RemoveNestedField(c.Object, "metadata", "ownerReferences")
	}
	return c, nil
}

// statusOf is the status of the copy of o, empty when there is none: observed generations count those of the copy, which begin anew.
func statusOf(o Object, renamed *unstructured.Unstructured) map[string]any {
	const first = 1 // generation of an object that was just made
	status, _, _ := unstructured.NestedMap(renamed.Object, "status")
	if status == nil {
		return map[string]any{}
	}
	return observed(status, o.GetGeneration(), first).(map[string]any)
}

// observed replaces each observedGeneration: the last one by that of the copy, an earlier one by that before it.
func observed(v any, was, is int64) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if n, ok := value.(int64); ok && key == "observedGeneration" {
				if n == was {
					v[key] = is
				} else {
					v[key] = max(is-1, 0)
				}
				continue
			}
			v[key] = observed(value, was, is)
		}
	case []any:
		for i := range v {
			v[i] = observed(v[i], was, is)
		}
	}
	return v
}

// different says where a copy is not what it has to be, at most three places; nil: it is.
func different(o Object, copied Object, uids map[types.UID]types.UID) []string {
	want, err := copyOf(o, uids)
	if err != nil {
		return []string{o.ID().String() + ": " + err.Error()}
	}
	var places []string
	add := func(place string) {
		if len(places) < 3 {
			places = append(places, o.ID().String()+": "+place)
		}
	}
	have := copied.DeepCopy()
	keys := map[string]bool{}
	for _, m := range []map[string]any{want.Object, have.Object} {
		for k := range m {
			keys[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		switch k {
		case "metadata":
		case "status":
			status, _, _ := unstructured.NestedMap(have.Object, k)
			if wanted := statusOf(o, want); !reflect.DeepEqual(wanted, status) && len(wanted)+len(status) > 0 {
				add(k)
			}
		default:
			if !reflect.DeepEqual(want.Object[k], have.Object[k]) {
				add(k)
			}
		}
	}
	for name, pair := range map[string][2]any{
		"metadata.labels":          {want.GetLabels(), have.GetLabels()},
		"metadata.annotations":     {bare(want.GetAnnotations()), bare(have.GetAnnotations())},
		"metadata.finalizers":      {want.GetFinalizers(), have.GetFinalizers()},
		"metadata.ownerReferences": {want.GetOwnerReferences(), have.GetOwnerReferences()},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) && !(reflect.ValueOf(pair[0]).Len() == 0 && reflect.ValueOf(pair[1]).Len() == 0) {
			add(name)
		}
	}
	if o.deleting() && len(o.GetFinalizers()) > 0 && !copied.deleting() {
		add("metadata.deletionTimestamp")
	}
	slices.Sort(places)
	return places
}

// bare are annotations without those of moves.
func bare(a map[string]string) map[string]string {
	a = maps.Clone(a)
	delete(a, copyAnnotation)
	delete(a, createdAnnotation)
	return a
}

// repointed are owner references in which every owner of uids gave way to the one that is named for it, under the names of its group; nil: there
// is none. The place in the list, and whether it is the controller, stay.
func repointed(owners []metav1.OwnerReference, uids map[types.UID]types.UID) []metav1.OwnerReference {
	out, changed := slices.Clone(owners), false
	for i := range out {
		if uid, moved := uids[out[i].UID]; moved {
			out[i].UID, out[i].APIVersion, changed = uid, translate.GroupVersion(out[i].APIVersion), true
		}
	}
	if !changed {
		return nil
	}
	return out
}

// rank is when a kind may work again: what others wait for first, what could remove machines last.
func rank(id ID) int {
	switch {
	case id.Kind == "MachineHealthCheck":
		return 5
	case id.Kind == "MachineDeployment" || id.Kind == "MachinePool":
		return 4
	case id.Kind == "MachineSet":
		return 3
	case id.Kind == "Machine":
		return 2
	case id.Group != translate.Standard && strings.HasSuffix(id.Kind, "Machine"):
		return 1
	}
	return 0
}
