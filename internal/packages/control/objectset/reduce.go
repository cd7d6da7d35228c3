package objectset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/scope"
)

// Reduce is the transform of caches of ObjectSets. It keeps what decisions are made from: of a revision that is archived and has given up its
// objects that is no object, and history is most of what there is.
func Reduce(in any) (any, error) {
	os, ok := in.(*v1alpha1.ObjectSet)
	if !ok {
		cluster, ok := in.(*v1alpha1.ClusterObjectSet)
		if !ok {
			return in, nil
		}
		os = scope.Cluster.Namespaced(cluster).(*v1alpha1.ObjectSet)
	}
	os.ManagedFields = nil
	delete(os.Annotations, corev1.LastAppliedConfigAnnotation)
	if os.Spec.LifecycleState == v1alpha1.LifecycleStateArchived && !slices.Contains(os.Finalizers, v1alpha1.CachedFinalizer) &&
		conditions.IsTrue(os.Status.Conditions, v1alpha1.ConditionArchived) {
		for i := range os.Spec.Phases {
			os.Spec.Phases[i].Objects = nil // names of slices stay: they are not collected before the revision
		}
		os.Spec.AvailabilityProbes = nil
	}
	return in, nil
}
