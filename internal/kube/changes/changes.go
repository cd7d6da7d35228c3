// Package changes tells which writes to an object are a reason for a pass.
//
// Others write to objects that a controller watches: times, counters, fields of their own. A pass for each of these costs a processor when they
// come many times a second, and has nothing to do. So a watch says what a pass reads of an object, and only changes of that count.
package changes

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Of lets an update through when seen gives something else for the new object than for the old one, and when the name has another object by
// now. Creations and deletions pass. What seen gives must not be changed later.
func Of(seen func(client.Object) any) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if e.ObjectOld == nil || e.ObjectNew == nil {
			return false
		}
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || !equality.Semantic.DeepEqual(seen(e.ObjectOld), seen(e.ObjectNew))
	}}
}

// Into lets objects through when they come to be as is says: created so, or changed to it. What they do later is no reason, nor that they go.
func Into(is func(client.Object) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return is(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return is(e.ObjectNew) && !is(e.ObjectOld) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// Content is everything of an object that isn't bookkeeping of the API server.
func Content(obj client.Object) any {
	c := reflect.New(reflect.TypeOf(obj).Elem())
	c.Elem().Set(reflect.ValueOf(obj).Elem()) // the metadata is a copy now; what it points to is not changed
	seen := c.Interface().(client.Object)
	seen.SetResourceVersion("")
	seen.SetManagedFields(nil)
	return seen
}

// Meta is what passes read of an object's metadata.
type Meta struct {
	Labels, Annotations map[string]string
	Deleted             bool
}

// MetaOf reads the labels and annotations whose keys begin with one of the prefixes.
func MetaOf(obj metav1.Object, prefixes ...string) Meta {
	return Meta{Labels: with(obj.GetLabels(), prefixes), Annotations: with(obj.GetAnnotations(), prefixes), Deleted: !obj.GetDeletionTimestamp().IsZero()}
}

func with(all map[string]string, prefixes []string) map[string]string {
	kept := map[string]string{}
	for k, v := range all {
		for _, p := range prefixes {
			if strings.HasPrefix(k, p) {
				kept[k] = v
			}
		}
	}
	return kept
}
