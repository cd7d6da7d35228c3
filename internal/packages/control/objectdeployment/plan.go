package objectdeployment

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/control/objectset"
	"hcp.internal/platform/internal/packages/engine/revision"
)

// observed is what is decided from.
type observed struct {
	deployment *v1alpha1.ObjectDeployment
	// kind is ObjectDeployment or ClusterObjectDeployment.
	kind string
	hash string
	// sets are the revisions, oldest first.
	sets []*v1alpha1.ObjectSet
	// refused says why the API server takes no new revision; empty when it does, or was not asked.
	refused string
}

// plan is what is to be done, in order. The zero plan does nothing.
type plan struct {
	lifecycle []lifecycle
	create    *v1alpha1.ObjectSet
	// remove are archived revisions beyond the history limit.
	remove []*v1alpha1.ObjectSet
}

// lifecycle is a change of what a revision does.
type lifecycle struct {
	set   *v1alpha1.ObjectSet
	state v1alpha1.LifecycleState
	// byParent is the value of the annotation that says who paused the revision; nil leaves it as it is, "" removes it.
	byParent *string
}

// current is the revision of the present template; it is the newest, or there is none.
func (o observed) current() *v1alpha1.ObjectSet {
	if len(o.sets) == 0 {
		return nil
	}
	if last := o.sets[len(o.sets)-1]; last.Annotations[v1alpha1.HashAnnotation] == o.hash {
		return last
	}
	return nil
}

func (o observed) previous() []*v1alpha1.ObjectSet {
	if o.current() == nil {
		return o.sets
	}
	return o.sets[:len(o.sets)-1]
}

// planFor never archives or removes a revision that serves: one that is available while none after it is.
func planFor(o observed) plan {
	if slices.ContainsFunc(o.sets, func(os *v1alpha1.ObjectSet) bool { return os.Spec.Revision == 0 }) {
		return plan{} // its number is still to be set, and decides who is newest
	}
	p := plan{lifecycle: pauses(o)}
	if o.deployment.Spec.Paused {
		return p
	}
	if o.current() == nil {
		if len(o.deployment.Spec.Template.Spec.Phases) > 0 {
			p.create = newRevision(o)
		}
		return p
	}
	if len(p.lifecycle) == 0 { // one step at a time: what was just resumed is not archived from what it said before
		p.lifecycle = archives(o)
	}
	p.remove = beyondHistory(o)
	return p
}

func pausedByParent(os *v1alpha1.ObjectSet) bool {
	return os.Spec.LifecycleState == v1alpha1.LifecycleStatePaused && os.Annotations[v1alpha1.PausedByParentAnnotation] == "true"
}

// pauses makes revisions follow their deployment. One that somebody paused by itself stays so.
func pauses(o observed) []lifecycle {
	var out []lifecycle
	for _, os := range o.sets {
		if os.Spec.LifecycleState == v1alpha1.LifecycleStateArchived || o.deployment.Spec.Paused == pausedByParent(os) {
			continue
		}
		if o.deployment.Spec.Paused {
			out = append(out, lifecycle{set: os, state: v1alpha1.LifecycleStatePaused, byParent: ptr.To("true")})
		} else {
			out = append(out, lifecycle{set: os, state: v1alpha1.LifecycleStateActive, byParent: ptr.To("")})
		}
	}
	return out
}

func newRevision(o observed) *v1alpha1.ObjectSet {
	d := o.deployment
	annotations := maps.Clone(d.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation) // it is about the deployment
	annotations[v1alpha1.HashAnnotation] = o.hash
	labels := maps.Clone(d.Spec.Template.Metadata.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.ObjectDeploymentLabel] = d.Name
	set := &v1alpha1.ObjectSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: revision.ObjectSetName(d.Name, o.hash), Labels: labels, Annotations: annotations,
			// So the ObjectSet needs no write of its own before its first object.
			Finalizers: slices.Clone(objectset.Finalizers),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: o.kind, Name: d.Name, UID: d.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: v1alpha1.ObjectSetSpec{LifecycleState: v1alpha1.LifecycleStateActive, Revision: 1, ObjectSetTemplateSpec: d.Spec.Template.Spec},
	}
	for _, os := range o.sets {
		set.Spec.Previous = append(set.Spec.Previous, v1alpha1.PreviousRevisionReference{Name: os.Name})
		set.Spec.Revision = max(set.Spec.Revision, os.Spec.Revision+1)
	}
	return set
}

// archives takes revisions out of service, oldest first: all that are older than one that is available, and a broken one of which the next
// wants nothing. One with phases of a class is paused first, so that whoever works on them stops.
func archives(o observed) []lifecycle {
	var out []lifecycle
	for _, os := range obsolete(o.sets) {
		switch {
		case os.Spec.LifecycleState == v1alpha1.LifecycleStateArchived:
		case !hasClasses(os) || standsStill(os):
			out = append(out, lifecycle{set: os, state: v1alpha1.LifecycleStateArchived})
		case os.Spec.LifecycleState != v1alpha1.LifecycleStatePaused:
			out = append(out, lifecycle{set: os, state: v1alpha1.LifecycleStatePaused})
		}
	}
	return out
}

// standsStill says whether everybody who works on a revision has confirmed that it is paused, and it has not been told to go on since.
func standsStill(os *v1alpha1.ObjectSet) bool {
	c := conditions.Current(os.Status.Conditions, v1alpha1.ConditionPaused, os.Generation)
	return c != nil && c.Status == metav1.ConditionTrue
}

// obsolete returns revisions that have nothing to do any more, oldest first.
func obsolete(sets []*v1alpha1.ObjectSet) []*v1alpha1.ObjectSet {
	var out []*v1alpha1.ObjectSet
	for j := len(sets) - 1; j > 0; j-- {
		if available(sets[j]) {
			return append(slices.Clone(sets[:j]), out...)
		}
		older := sets[j-1]
		if sets[j].Spec.LifecycleState == v1alpha1.LifecycleStateArchived {
			continue // it wants nothing any more, and the cache doesn't have what it wanted
		}
		if older.Spec.LifecycleState == v1alpha1.LifecycleStateArchived || older.Spec.Revision >= sets[j].Spec.Revision {
			continue
		}
		if !available(older) && nothingShared(sets[j], older) {
			out = append([]*v1alpha1.ObjectSet{older}, out...)
		}
	}
	return out
}

// nothingShared says whether a revision asks for none of the objects that an older one still controls. It is false when that is not known: before
// the older one reported, or when objects are in slices.
func nothingShared(newer, older *v1alpha1.ObjectSet) bool {
	if older.Status.ControllerOf == nil {
		return false
	}
	wants := map[v1alpha1.ControlledObjectReference]struct{}{}
	for _, p := range newer.Spec.Phases {
		if len(p.Slices) > 0 {
			return false
		}
		for i := range p.Objects {
			obj := &p.Objects[i].Object
			kind := obj.GroupVersionKind()
			ref := v1alpha1.ControlledObjectReference{Kind: kind.Kind, Group: kind.Group, Name: obj.GetName(), Namespace: obj.GetNamespace()}
			wants[ref] = struct{}{}
			if ref.Namespace == "" {
				ref.Namespace = newer.Namespace
				wants[ref] = struct{}{}
			}
		}
	}
	for _, ref := range older.Status.ControllerOf {
		ref.Version = ""
		if _, shared := wants[ref]; shared {
			return false
		}
	}
	return true
}

func hasClasses(os *v1alpha1.ObjectSet) bool {
	return slices.ContainsFunc(os.Spec.Phases, func(p v1alpha1.ObjectSetTemplatePhase) bool { return p.Class != "" })
}

func available(os *v1alpha1.ObjectSet) bool {
	return os.Spec.LifecycleState != v1alpha1.LifecycleStateArchived && conditions.IsTrue(os.Status.Conditions, v1alpha1.ConditionAvailable)
}

// defaultHistoryLimit is what the API server fills in, too.
const defaultHistoryLimit = 10

// beyondHistory are the oldest previous revisions beyond the limit. Only those that have given up their objects are removed.
func beyondHistory(o observed) []*v1alpha1.ObjectSet {
	previous := o.previous()
	excess := len(previous) - int(max(0, ptr.Deref(o.deployment.Spec.RevisionHistoryLimit, defaultHistoryLimit)))
	var out []*v1alpha1.ObjectSet
	for i := 0; i < excess; i++ {
		if os := previous[i]; conditions.IsTrue(os.Status.Conditions, v1alpha1.ConditionArchived) && os.DeletionTimestamp.IsZero() &&
			metav1.IsControlledBy(os, o.deployment) {
			out = append(out, os)
		}
	}
	return out
}
