package hostedcluster

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/auditlogs"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/hostedcluster/watches"
	"hcp.internal/platform/internal/kube/changes"
	"hcp.internal/platform/internal/kube/throttle"
	"hcp.internal/platform/internal/operator"
)

// SetupWithManager registers the controller. referenced comes from NewSourceCache and has been added to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, referenced cache.Cache) error {
	to := watches.Requests{Reader: r.Client}
	ours := handler.EnqueueRequestsFromMapFunc(watches.ByAnnotation)
	b := ctrl.NewControllerManagedBy(mgr).Named("hostedcluster").
		For(&hyperv1.HostedCluster{}, builder.WithPredicates(watches.SpecOrMetadataChanged())).
		Watches(&hyperv1.HostedControlPlane{}, ours).
		Watches(&hyperv1.NodePool{}, handler.EnqueueRequestsFromMapFunc(watches.ByClusterName), builder.WithPredicates(changes.Of(watches.SeenOfPool))).
		Watches(&corev1.Namespace{}, ours).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(to.Everyone), builder.WithPredicates(management.APIMoved())).
		Watches(&corev1.Secret{}, ours).
		Watches(&hyperv1.ControlPlaneComponent{}, ours).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(to.ByDeployment), builder.WithPredicates(watches.DeploymentMatters()))
	if c := r.Admission; c != nil {
		room := handler.EnqueueRequestsFromMapFunc(c.Requests)
		b = b.Watches(&corev1.Pod{}, room, builder.WithPredicates(admission.RoomChanged())).Watches(&corev1.Node{}, room, builder.WithPredicates(admission.RoomChanged())).
			WatchesRawSource(source.Channel(c.Wake, &handler.EnqueueRequestForObject{}))
	}
	if r.EtcdRecovery {
		b = b.Watches(&batchv1.Job{}, ours).
			Watches(&appsv1.StatefulSet{}, handler.EnqueueRequestsFromMapFunc(to.ByDeployment), builder.WithPredicates(watches.EtcdMatters()))
	}
	if r.AuditLogs {
		b = b.Watches(&auditlogv1alpha1.AuditLogPersistenceConfig{}, handler.EnqueueRequestsFromMapFunc(to.Everyone), builder.WithPredicates(changes.Of(auditlogs.Seen)))
	}
	if r.PrivateLink {
		b = b.Watches(&hyperv1.AWSEndpointService{}, ours, builder.WithPredicates(changes.Of(watches.SeenOfEndpointService)))
	}
	if r.AzureLink {
		b = b.Watches(&hyperv1.AzurePrivateLinkService{}, ours, builder.WithPredicates(changes.Of(watches.SeenOfEndpointService)))
	}
	if r.Capabilities.ClusterAPI {
		b = b.Watches(&clusterv1.Cluster{}, ours, builder.WithPredicates(changes.Of(watches.SeenOfCluster)))
	}
	for _, obj := range []client.Object{&corev1.ConfigMap{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &networkingv1.NetworkPolicy{}} {
		b = b.Watches(obj, ours, builder.WithPredicates(watches.NotCreated()))
	}
	for _, k := range []sources.Kind{sources.Secret, sources.ConfigMap} {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(k.GVK())
		b = b.WatchesRawSource(source.Kind(referenced, obj, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, o *metav1.PartialObjectMetadata) []reconcile.Request {
				return to.BySource(ctx, k, o)
			})))
	}
	b = b.WatchesRawSource(source.Channel(operator.Lookups(r.Releases), &handler.EnqueueRequestForObject{}))
	return b.WithOptions(operator.Workers()).Complete(throttle.Wrap(r, r.Clock, to.Awaited))
}
