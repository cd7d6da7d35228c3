package objecttemplate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/owner"
	"hcp.internal/platform/internal/packages/engine/phase"
)

// retryRefused is when an object that was refused is tried again: what stands in the way is not watched.
const retryRefused = 30 * time.Second

// keep makes the object as it was rendered, and copies its conditions.
func (r *Reconciler) keep(ctx context.Context, ot *v1alpha1.ObjectTemplate, obj *unstructured.Unstructured) error {
	content, err := obj.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding what was rendered: %w", err)
	}
	o := r.owner(ot)
	o.Content = string(content)
	kind := obj.GroupVersionKind()
	ref := &v1alpha1.ControlledObjectReference{Kind: kind.Kind, Group: kind.Group, Version: kind.Version, Name: obj.GetName(), Namespace: obj.GetNamespace()}
	result, err := r.Engine.Reconcile(ctx, o, phase.Phase{Objects: []v1alpha1.ObjectSetObject{{Object: *obj}}, Conditions: conditionsOf})
	if err != nil {
		return err
	}
	if len(result.Violations) > 0 {
		return &invalid{reason: v1alpha1.ReasonSourceError, after: retryRefused, err: errors.New(strings.Join(result.Violations[0].Errors, ", "))}
	}
	if collisions := result.Collisions(); len(collisions) > 0 {
		return &invalid{reason: v1alpha1.ReasonSourceError, after: retryRefused, err: errors.New(collisions[0].Collision)}
	}
	// Only now: whoever uses the old object has nothing else until the new one is there. The status names the old one until that is written.
	if err := r.removeOther(ctx, ot, o, ref); err != nil {
		return err
	}
	ot.Status.ControllerOf = ref
	copied := result.Conditions()
	ot.Status.Conditions = slices.DeleteFunc(ot.Status.Conditions, func(c metav1.Condition) bool {
		return !slices.ContainsFunc(copied, func(n metav1.Condition) bool { return n.Type == c.Type })
	})
	conditions.Set(&ot.Status.Conditions, r.Clock.Now(), copied...)
	return nil
}

// removeOther deletes the object that was made before, when the template now gives another one.
func (r *Reconciler) removeOther(ctx context.Context, ot *v1alpha1.ObjectTemplate, o phase.Owner, ref *v1alpha1.ControlledObjectReference) error {
	old := ot.Status.ControllerOf
	if old == nil || old.Version == "" || (old.Kind == ref.Kind && old.Group == ref.Group && old.Name == ref.Name && old.Namespace == ref.Namespace) {
		return nil
	}
	obj := unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: old.Group, Version: old.Version, Kind: old.Kind})
	obj.SetNamespace(old.Namespace)
	obj.SetName(old.Name)
	_, err := r.Engine.Teardown(ctx, o, phase.Phase{Objects: []v1alpha1.ObjectSetObject{{Object: obj}}})
	return err
}

func (r *Reconciler) owner(ot *v1alpha1.ObjectTemplate) phase.Owner {
	return phase.Owner{
		Entry:     owner.Entry{APIVersion: v1alpha1.GroupVersion.String(), Kind: r.Scope.Kind("ObjectTemplate"), Name: ot.Name, UID: ot.UID},
		Namespace: ot.Namespace, Generation: ot.Generation,
	}
}
