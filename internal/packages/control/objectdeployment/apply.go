package objectdeployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
)

// creation is how the creation of a revision ended.
type creation int

const (
	created creation = iota
	// present: it was there already, and the cache doesn't know yet.
	present
	// taken: something else has its name.
	taken
)

func (r *Reconciler) create(ctx context.Context, obs observed, set *v1alpha1.ObjectSet) (creation, error) {
	revision := set.DeepCopy()
	err := r.Client.Create(ctx, revision, client.FieldOwner(v1alpha1.FieldOwner))
	if err == nil {
		r.made.Store(client.ObjectKeyFromObject(obs.deployment), made{obs.deployment.UID, revision.Name})
		r.Events.Tell(obs.deployment, revision, corev1.EventTypeNormal, v1alpha1.ReasonProgressing, "RollOut",
			fmt.Sprintf("Rolling out revision %d, %s %s.", revision.Spec.Revision, r.Scope.Kind("ObjectSet"), revision.Name))
		ctrl.LoggerFrom(ctx).Info("created revision", "objectSet", set.Name, "revision", set.Spec.Revision)
		return created, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return taken, fmt.Errorf("creating revision %s: %w", set.Name, err)
	}
	there := &v1alpha1.ObjectSet{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(set), there); err != nil {
		return taken, fmt.Errorf("reading revision %s: %w", set.Name, err)
	}
	if there.Spec.LifecycleState != v1alpha1.LifecycleStateArchived && there.Spec.Revision >= set.Spec.Revision &&
		metav1.IsControlledBy(there, obs.deployment) && equality.Semantic.DeepEqual(there.Spec.ObjectSetTemplateSpec, set.Spec.ObjectSetTemplateSpec) {
		return present, nil
	}
	return taken, nil
}

// made is the revision that was created last, and for whom.
type made struct {
	uid  types.UID
	name string
}

// behind says whether the revision that was created last is there, and the cache doesn't have it yet.
func (r *Reconciler) behind(ctx context.Context, obs observed) (bool, error) {
	key := client.ObjectKeyFromObject(obs.deployment)
	known, ok := r.made.Load(key)
	if !ok {
		return false, nil
	}
	last := known.(made)
	if last.uid != obs.deployment.UID || slices.ContainsFunc(obs.sets, func(os *v1alpha1.ObjectSet) bool { return os.Name == last.name }) {
		return false, nil
	}
	there := &v1alpha1.ObjectSet{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: obs.deployment.Namespace, Name: last.name}, there)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(there, obs.deployment) {
		r.made.Delete(key)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading revision %s: %w", last.name, err)
	}
	return true, nil
}

func (r *Reconciler) apply(ctx context.Context, p plan) error {
	var errs []error
	for _, change := range p.lifecycle {
		errs = append(errs, r.setLifecycle(ctx, change))
	}
	for _, os := range p.remove {
		err := r.Client.Delete(ctx, os, client.Preconditions{UID: ptr.To(os.UID)})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting revision %s: %w", os.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) setLifecycle(ctx context.Context, change lifecycle) error {
	metadata := map[string]any{"resourceVersion": change.set.ResourceVersion}
	if change.byParent != nil {
		annotation := map[string]any{v1alpha1.PausedByParentAnnotation: nil}
		if *change.byParent != "" {
			annotation[v1alpha1.PausedByParentAnnotation] = *change.byParent
		}
		metadata["annotations"] = annotation
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"lifecycleState": change.state}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: change.set.Namespace, Name: change.set.Name}}
	answer.SetGroupVersionKind(r.Scope.GroupVersionKind("ObjectSet"))
	err = r.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data), client.FieldOwner(v1alpha1.FieldOwner))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("making revision %s %s: %w", change.set.Name, change.state, err)
	}
	return nil
}
