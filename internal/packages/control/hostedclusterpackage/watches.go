package hostedclusterpackage

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
)

// workers is how many HostedClusterPackages are looked at at the same time.
const workers = 4

// SetupWithManager adds the controller. The manager's scheme has to know HostedClusters.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(namespaceKind)
	all := handler.EnqueueRequestsFromMapFunc(r.all)
	return ctrl.NewControllerManagedBy(mgr).Named("hostedclusterpackage").
		// Status is ours: a change of it is no reason to look again.
		For(&packagesv1.HostedClusterPackage{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Owns(&packagesv1.Package{}).
		Watches(&hyperv1.HostedCluster{}, all, builder.WithPredicates(clusterChanged)).
		WatchesMetadata(namespace, all, builder.WithPredicates(namespaceChanged)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// all HostedClusterPackages may be concerned by a hosted cluster, also by one that stopped matching.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var list packagesv1.HostedClusterPackageList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing HostedClusterPackages")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// clusterChanged passes what a rollout looks at: labels, whether the cluster is available, and whether it goes.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*hyperv1.HostedCluster)
	after, also := e.ObjectNew.(*hyperv1.HostedCluster)
	return !ok || !also || !maps.Equal(before.Labels, after.Labels) || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		isAvailable(before) != isAvailable(after) || pause.Asleep(before.Status.Conditions) != pause.Asleep(after.Status.Conditions)
}}

func isAvailable(hc *hyperv1.HostedCluster) bool {
	return conditions.IsTrue(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable))
}

// namespaceChanged passes namespaces that come and go.
var namespaceChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
}}
