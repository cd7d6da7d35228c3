package phase

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/owner"
)

// facts are what is decided from about an object that is there.
type facts struct {
	owners []owner.Entry
	// revision that wrote the object, 0 when none did.
	revision int64
	// newer says that the controller is a newer revision of the same deployment.
	newer bool
	// ourPackage says that the object is part of the package operator's own package.
	ourPackage bool
	// unowned says that the object has no controller, and that no revision or phase of one is among its owners, however those are kept.
	unowned bool
	// leftover says that it is unowned, and that no newer revision is there to come back for it: its number is from an installation that is gone.
	leftover bool
}

// ownPackage is the name of the package that the package operator itself is installed from. It takes its objects over from whatever
// installed it first.
const ownPackage = "package-operator"

func (r Rules) factsOf(obj metav1.Object) (facts, error) {
	owners, err := r.Owners.Read(obj)
	if err != nil {
		return facts{}, err
	}
	revision, err := strconv.ParseInt(obj.GetAnnotations()[v1alpha1.RevisionAnnotation], 10, 64)
	if err != nil {
		revision = 0
	}
	// Who works on it from another cluster says so in the annotation, whatever our own strategy.
	elsewhere, err := owner.Annotation{}.Read(obj)
	unowned := err == nil && len(elsewhere) == 0 && owner.Controller(owners) == nil && !slices.ContainsFunc(owners, isRevision)
	return facts{owners: owners, revision: revision, ourPackage: obj.GetLabels()[v1alpha1.PackageLabel] == ownPackage, unowned: unowned}, nil
}

// isRevision says whether an owner is a revision, or a phase of one.
func isRevision(e owner.Entry) bool {
	kind := strings.TrimPrefix(e.Kind, "Cluster")
	return e.GroupKind().Group == v1alpha1.GroupVersion.Group && (kind == "ObjectSet" || kind == "ObjectSetPhase")
}

// verdict is what is to become of an object that is there.
type verdict int

const (
	keep    verdict = iota // it is ours
	adopt                  // it becomes ours
	leave                  // a later revision has it
	collide                // it is somebody else's
)

// decide never adopts what belongs to nobody we know, unless the object's collision protection says so. The text says why not.
func (r Rules) decide(o Owner, force bool, protect v1alpha1.CollisionProtection, f facts) (verdict, string) {
	protect = protection(protect)
	if force || f.ourPackage {
		protect = v1alpha1.CollisionProtectionNone
	}
	controller := owner.Controller(f.owners)
	sibling := false
	if controller != nil {
		if controller.Same(o.Entry) {
			return keep, ""
		}
		_, sibling = o.Siblings[controller.UID]
	}
	switch {
	case f.revision > o.Revision && (sibling || f.newer || (r.LeaveToNewer && controller == nil && !f.leftover)):
		return leave, ""
	case sibling && f.revision == o.Revision && (r.RefuseOrphans || protect != v1alpha1.CollisionProtectionNone):
		return collide, "revision collision"
	case sibling:
		return adopt, ""
	case controller == nil && r.RefuseOrphans && f.revision != 0:
		return collide, "not owned by previous revision"
	case protect == v1alpha1.CollisionProtectionNone:
		return adopt, ""
	case protect == v1alpha1.CollisionProtectionIfNoController && controller == nil:
		return adopt, ""
	case f.leftover:
		return collide, fmt.Sprintf("not owned by previous revision: nobody owns it, and annotation %s says that revision %d of an installation that is gone has written it; "+
			"delete the object, or set its collision protection to %s to have it adopted", v1alpha1.RevisionAnnotation, f.revision, v1alpha1.CollisionProtectionIfNoController)
	}
	return collide, "not owned by previous revision"
}

// refusal is the message about an object that is not adopted.
func refusal(why string, kind schema.GroupVersionKind, key client.ObjectKey) string {
	if why == "revision collision" {
		return fmt.Sprintf("refusing adoption, revision collision on %s %s", kind, key)
	}
	return fmt.Sprintf("refusing adoption, object %s %s %s", kind, key, why)
}
