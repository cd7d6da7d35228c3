package objectset

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
)

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
