package objectset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/probe"
)

// observed is what a pass found out. All conditions follow from it.
type observed struct {
	// violations and collisions say why objects are not written.
	violations []phase.Violation
	collisions []phase.Object
	// failure says what is not available; empty when everything is.
	failure string
	// controllerOf are the objects that the revision controls, those of phases that were not reached included.
	controllerOf []v1alpha1.ControlledObjectReference
	// objects are those that the revision is to control.
	objects []v1alpha1.ControlledObjectReference
	// mapped conditions of objects; keepMapped says that nobody looked.
	mapped     []metav1.Condition
	keepMapped bool
	remote     []v1alpha1.RemotePhaseReference
	// remotePaused and remoteActive count ObjectSetPhases.
	remotePaused, remoteActive int
}

func (r *Reconciler) rollOut(ctx context.Context, os *v1alpha1.ObjectSet) (observed, error) {
	phases, err := r.loadPhases(ctx, os)
	if err != nil {
		return observed{}, err
	}
	o := Owner(r.Scope, os)
	out := observed{objects: asked(phases, o.Namespace), remote: os.Status.RemotePhases, keepMapped: o.Paused}
	out.violations = append(duplicates(phases), repeatedNames(phases)...)
	probes, err := probe.Parse(os.Spec.AvailabilityProbes)
	if err != nil {
		out.violations = append(out.violations, phase.Violation{Position: "spec", Errors: []string{err.Error()}})
	}
	if len(out.violations) > 0 {
		out.controllerOf, out.keepMapped = os.Status.ControllerOf, true
		return out, nil
	}
	if o.Siblings, err = r.siblings(ctx, os); err != nil {
		return observed{}, err
	}
	if err := r.Engine.Use(ctx, o, unclassed(phases)); err != nil {
		return observed{}, err
	}
	stopped := false
	for i := range phases {
		p := &phases[i]
		switch {
		case p.Class != "":
			stopped, err = r.remotePhase(ctx, os, p, stopped, &out)
		case stopped:
			out.controllerOf = append(out.controllerOf, r.Engine.Controlled(ctx, o, p.Objects)...)
		default:
			stopped, err = r.localPhase(ctx, o, phase.Phase{Name: p.Name, Objects: p.Objects, Probes: probes}, &out)
		}
		if err != nil {
			return observed{}, err
		}
	}
	return out, nil
}

// localPhase says whether the rollout stops here.
func (r *Reconciler) localPhase(ctx context.Context, o phase.Owner, p phase.Phase, out *observed) (bool, error) {
	result, err := r.Engine.Reconcile(ctx, o, p)
	if err != nil {
		return false, err
	}
	out.controllerOf = append(out.controllerOf, result.ControllerOf()...)
	out.mapped = append(out.mapped, result.Conditions()...)
	if len(result.Violations) > 0 {
		out.violations = result.Violations
		out.controllerOf = append(out.controllerOf, r.Engine.Controlled(ctx, o, p.Objects)...)
		return true, nil
	}
	if out.collisions = result.Collisions(); len(out.collisions) > 0 {
		return true, nil
	}
	var failures []string
	for _, obj := range result.Objects {
		if len(obj.Failures) > 0 {
			failures = append(failures, fmt.Sprintf("%s %s %s: %s", obj.Kind.Group, obj.Kind.Kind, obj.Key(), strings.Join(obj.Failures, ", ")))
		}
	}
	if len(failures) > 0 {
		out.failure = fmt.Sprintf("Phase %q failed: %s", p.Name, strings.Join(failures, ", "))
	}
	return len(failures) > 0, nil
}

// loadPhases adds the objects of slices to those of the phases. The result shares everything else with os.
func (r *Reconciler) loadPhases(ctx context.Context, os *v1alpha1.ObjectSet) ([]v1alpha1.ObjectSetTemplatePhase, error) {
	phases := slices.Clone(os.Spec.Phases)
	for i := range phases {
		p := &phases[i]
		for _, name := range p.Slices {
			slice := &v1alpha1.ObjectSlice{}
			if err := r.Live.Get(ctx, client.ObjectKey{Namespace: os.Namespace, Name: name}, slice); err != nil {
				return nil, fmt.Errorf("reading slice %s of phase %s: %w", name, p.Name, err)
			}
			if err := r.ownSlice(ctx, os, slice); err != nil {
				return nil, err
			}
			p.Objects = append(slices.Clip(p.Objects), slice.Objects...)
		}
	}
	return phases, nil
}

// ownSlice keeps a slice from being collected as long as the revision is there.
func (r *Reconciler) ownSlice(ctx context.Context, os *v1alpha1.ObjectSet, slice *v1alpha1.ObjectSlice) error {
	if !os.DeletionTimestamp.IsZero() || slices.ContainsFunc(slice.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == os.UID }) {
		return nil
	}
	before := &v1alpha1.ObjectSlice{ObjectMeta: *slice.ObjectMeta.DeepCopy()}
	after := &v1alpha1.ObjectSlice{ObjectMeta: slice.ObjectMeta}
	after.OwnerReferences = append(slices.Clip(after.OwnerReferences), metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: r.Scope.Kind("ObjectSet"), Name: os.Name, UID: os.UID,
	})
	// The list is replaced as a whole, so nobody may have changed it meanwhile.
	err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("becoming an owner of slice %s: %w", slice.Name, err)
	}
	return nil
}

// siblings are previous revisions and their phases. Those that don't exist any more have nothing to hand over.
func (r *Reconciler) siblings(ctx context.Context, os *v1alpha1.ObjectSet) (map[types.UID]struct{}, error) {
	out := map[types.UID]struct{}{}
	for _, ref := range os.Spec.Previous {
		previous := &v1alpha1.ObjectSet{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: os.Namespace, Name: ref.Name}, previous)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading previous revision %s: %w", ref.Name, err)
		}
		out[previous.UID] = struct{}{}
		for _, p := range previous.Status.RemotePhases {
			out[p.UID] = struct{}{}
		}
	}
	return out, nil
}

func unclassed(phases []v1alpha1.ObjectSetTemplatePhase) []v1alpha1.ObjectSetObject {
	var out []v1alpha1.ObjectSetObject
	for i := range phases {
		if phases[i].Class == "" {
			out = append(out, phases[i].Objects...)
		}
	}
	return out
}

// asked lists the objects of all phases.
func asked(phases []v1alpha1.ObjectSetTemplatePhase, namespace string) []v1alpha1.ControlledObjectReference {
	var out []v1alpha1.ControlledObjectReference
	for i := range phases {
		for j := range phases[i].Objects {
			out = append(out, reference(&phases[i].Objects[j], namespace))
		}
	}
	return out
}

func reference(obj *v1alpha1.ObjectSetObject, namespace string) v1alpha1.ControlledObjectReference {
	kind := obj.Object.GroupVersionKind()
	ref := v1alpha1.ControlledObjectReference{Kind: kind.Kind, Group: kind.Group, Name: obj.Object.GetName(), Namespace: obj.Object.GetNamespace()}
	if ref.Namespace == "" {
		ref.Namespace = namespace
	}
	return ref
}

// duplicates finds objects that are there more than once: the first one wins, the others are violations.
func duplicates(phases []v1alpha1.ObjectSetTemplatePhase) []phase.Violation {
	seen := map[string]struct{}{}
	var out []phase.Violation
	for i := range phases {
		for j := range phases[i].Objects {
			obj := &phases[i].Objects[j].Object
			key := fmt.Sprintf("%s %s/%s", obj.GroupVersionKind().GroupKind(), obj.GetNamespace(), obj.GetName())
			if _, again := seen[key]; again {
				out = append(out, phase.Violation{Position: fmt.Sprintf("Phase %q, %s", phases[i].Name, key), Errors: []string{"Duplicate Object"}})
			}
			seen[key] = struct{}{}
		}
	}
	return out
}

// repeatedNames finds phases with a class whose name another one has, which would share one ObjectSetPhase.
func repeatedNames(phases []v1alpha1.ObjectSetTemplatePhase) []phase.Violation {
	seen := map[string]struct{}{}
	var out []phase.Violation
	for i := range phases {
		if _, again := seen[phases[i].Name]; again {
			out = append(out, phase.Violation{Position: fmt.Sprintf("Phase %q", phases[i].Name), Errors: []string{"Duplicate phase name"}})
		}
		seen[phases[i].Name] = struct{}{}
	}
	return out
}
