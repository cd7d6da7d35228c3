package objectset

import (
	"context"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/owner"
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
	// remotePaused and remoteActive count ObjectSetPhases. One that said that it is paused before it was changed counts as both: whichever is wanted,
	// it is waited for.
	remotePaused, remoteActive int
	// late says that no event tells of some objects yet.
	late bool
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
	o.Newer = func(ctx context.Context, controller owner.Entry) (bool, error) { return r.newer(ctx, os, controller) }
	o.Superseded = sync.OnceValues(func() (bool, error) { return r.superseded(ctx, os) })
	if out.late, err = r.Engine.Use(ctx, o, unclassed(phases)); err != nil {
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
