package phase

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/owner"
)

// Rules are what differs between phases without and with a class.
type Rules struct {
	// Owners says how objects know their owners.
	Owners owner.Strategy
	// DefaultNamespace puts objects without a namespace into that of their owner.
	DefaultNamespace bool
	// DefaultLabels are for objects that don't have them.
	DefaultLabels map[string]string
	// RefuseOrphans never adopts an object that has a revision but no controller: whoever had it wanted it to stay.
	RefuseOrphans bool
	// LeaveToNewer leaves an object with a higher revision alone also when nobody controls it, unless it is left over from an installation that is gone, and asks
	// Owner.Newer about a controller that is not known.
	LeaveToNewer bool
	// HoldOnCollision creates and adopts nothing while an object of the phase is refused.
	HoldOnCollision bool

	// NoRevision leaves the annotation with the revision out.
	NoRevision bool

	checks []check
}

// target is what the API server says about a kind.
type target struct{ registered, namespaced bool }

// check returns what is wrong with an object, "" when nothing is. With stop the rest needn't be asked.
type check func(o Owner, obj *unstructured.Unstructured, t target) (problem string, stop bool)

func (r Rules) check(o Owner, obj *unstructured.Unstructured, t target) []string {
	var out []string
	for _, c := range r.checks {
		problem, stop := c(o, obj, t)
		if problem != "" {
			out = append(out, problem)
		}
		if stop {
			break
		}
	}
	return out
}

// Unclassed are the rules of phases without a class: the controller of the ObjectSet rolls them out.
func Unclassed() Rules {
	return Rules{
		Owners: owner.References{}, DefaultNamespace: true, LeaveToNewer: true, HoldOnCollision: true,
		checks: []check{named, registered, noOwnerReferences, withinNamespace, namespacedOnly},
	}
}

// managedBy is what objects of classed phases have carried since there are such phases.
var managedBy = map[string]string{"app.kubernetes.io/managed-by": "boxcutter"}

// SameCluster are the rules of phases with a class whose objects live where the ObjectSetPhase does.
func SameCluster() Rules {
	return Rules{
		Owners: owner.References{}, RefuseOrphans: true, DefaultLabels: managedBy,
		checks: append(classed(), namespaceOfOwner),
	}
}

// OtherCluster are the rules of phases with a class whose objects live in another cluster than the ObjectSetPhase.
func OtherCluster() Rules {
	return Rules{Owners: owner.Annotation{}, RefuseOrphans: true, DefaultLabels: managedBy, checks: classed()}
}

// Templated are the rules of objects that come from an ObjectTemplate.
func Templated() Rules {
	return Rules{Owners: owner.References{}, DefaultNamespace: true, NoRevision: true, checks: []check{named, registered, noOwnerReferences, withinNamespace, namespacedOnly}}
}

func classed() []check {
	return []check{named, registered, noServerFields}
}

// checkNew is check for objects that are to be written. What is not allowed any more has to be torn down nevertheless.
func (r Rules) checkNew(o Owner, obj *unstructured.Unstructured, t target) []string {
	out := r.check(o, obj, t)
	if _, annotated := r.Owners.(owner.Annotation); annotated && t.registered {
		if problem, _ := noOwners(o, obj, t); problem != "" {
			out = append(out, problem)
		}
	}
	return out
}

// noOwners: who owns an object of another cluster is said in an annotation, which is ours to write.
func noOwners(_ Owner, obj *unstructured.Unstructured, _ target) (string, bool) { //nolint:unparam // because it is one of the checks
	if _, ok := obj.GetAnnotations()[v1alpha1.OwnersAnnotation]; ok {
		return fmt.Sprintf("metadata.annotations[%s]: Forbidden: it says who owns the object, and is written for it", v1alpha1.OwnersAnnotation), false
	}
	return "", false
}

// named refuses what can't be part of a URL, which no API server would get to see.
func named(_ Owner, obj *unstructured.Unstructured, _ target) (string, bool) {
	switch {
	case obj.GetAPIVersion() == "" || obj.GetKind() == "":
		return "apiVersion and kind: Required value", true
	case obj.GetName() == "":
		return "metadata.name: Required value", true
	}
	for field, value := range map[string]string{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()} {
		if msgs := content.IsPathSegmentName(value); len(msgs) > 0 {
			return fmt.Sprintf("%s: Invalid value: %s", field, strings.Join(msgs, ", ")), true
		}
	}
	return "", false
}

func registered(_ Owner, obj *unstructured.Unstructured, t target) (string, bool) {
	if t.registered {
		return "", false
	}
	return fmt.Sprintf("%s not registered on the api server.", obj.GroupVersionKind()), true
}

func noOwnerReferences(_ Owner, obj *unstructured.Unstructured, _ target) (string, bool) {
	if len(obj.GetOwnerReferences()) > 0 {
		return "Object must not have a owner reference.", false
	}
	return "", false
}

func withinNamespace(o Owner, obj *unstructured.Unstructured, _ target) (string, bool) {
	if o.Namespace != "" && obj.GetNamespace() != "" && obj.GetNamespace() != o.Namespace {
		return "Must stay within the same namespace.", false
	}
	return "", false
}

// namespacedOnly looks at the kind, before a namespace is filled in: the API server ignores the namespace of cluster-scoped kinds, and
// whoever may create packages in one namespace could write such objects with our rights.
func namespacedOnly(o Owner, _ *unstructured.Unstructured, t target) (string, bool) {
	if o.Namespace != "" && !t.namespaced {
		return "Must be namespaced scoped when part of an non-cluster-scoped API.", false
	}
	return "", false
}

func namespaceOfOwner(o Owner, obj *unstructured.Unstructured, t target) (string, bool) {
	switch {
	case o.Namespace == "":
		return "", false
	case !t.namespaced:
		return "object must be namespace-scoped", false
	case obj.GetNamespace() != o.Namespace:
		return fmt.Sprintf("object must be in namespace %q, actual %q", o.Namespace, obj.GetNamespace()), false
	}
	return "", false
}

func noServerFields(_ Owner, obj *unstructured.Unstructured, _ target) (string, bool) {
	metadata, _, err := unstructured.NestedMap(obj.Object, "metadata")
	if err != nil {
		return "metadata: " + err.Error(), true
	}
	var fields []string
	for _, f := range []string{"uid", "generation", "generateName", "finalizers", "ownerReferences", "resourceVersion"} {
		switch v := metadata[f].(type) {
		case nil:
		case string:
			if v != "" {
				fields = append(fields, "metadata."+f+": Forbidden: must be empty")
			}
		case []any:
			if len(v) > 0 {
				fields = append(fields, "metadata."+f+": Forbidden: must be empty")
			}
		default:
			fields = append(fields, "metadata."+f+": Forbidden: must be empty")
		}
	}
	return strings.Join(fields, ", "), false
}

// protection is the collision protection that counts for an object.
func protection(p v1alpha1.CollisionProtection) v1alpha1.CollisionProtection {
	switch p {
	case v1alpha1.CollisionProtectionNone, v1alpha1.CollisionProtectionIfNoController:
		return p
	default:
		return v1alpha1.CollisionProtectionPrevent
	}
}
