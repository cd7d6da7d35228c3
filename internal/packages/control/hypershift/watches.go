package hypershift

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/outcome"
)

// workers is how many hosted clusters are looked at at the same time.
const workers = 4

// SetupWithManager adds the controller. cached holds what belongs to connectors.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, cached cache.Cache) error {
	back := func(_ context.Context, obj client.Object) []reconcile.Request {
		key := hostedClusterOf(obj)
		if key.Name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: key}}
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("hostedcluster-connector").
		For(&hyperv1.HostedCluster{}, builder.WithPredicates(matters)).
		Watches(&v1alpha1.Package{}, handler.EnqueueRequestsFromMapFunc(back), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	for _, part := range parts() {
		b = b.WatchesRawSource(source.Kind(cached, part, handler.EnqueueRequestsFromMapFunc(back), predicate.NewPredicateFuncs(func(client.Object) bool { return true })))
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	owned := func(_ context.Context, obj client.Object) []reconcile.Request {
		key, ok := names.ParseBackReference(obj.GetAnnotations()[hyperv1.HostedClusterAnnotation])
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: key}}
	}
	return b.WatchesMetadata(namespace, handler.EnqueueRequestsFromMapFunc(owned), builder.WithPredicates(predicate.AnnotationChangedPredicate{})).Complete(outcome.Wrap(r))
}

// matters passes what a connector depends on.
var matters = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*hyperv1.HostedCluster)
	after, also := e.ObjectNew.(*hyperv1.HostedCluster)
	available := func(hc *hyperv1.HostedCluster) bool {
		return conditions.IsTrue(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable))
	}
	return !ok || !also || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || available(before) != available(after) ||
		!maps.Equal(before.Spec.NodeSelector, after.Spec.NodeSelector) || !equality.Semantic.DeepEqual(before.Spec.Tolerations, after.Spec.Tolerations)
}}
