package hostedcluster

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/auditlogs"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/kube/changes"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/throttle"
	"hcp.internal/platform/internal/operator"
)

// CacheOptions bound what the manager's cache holds: of kinds that others use, too, only what is ours, and nothing's managed fields.
func CacheOptions() cache.Options {
	owned := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{names.OwnedByLabel: names.HypershiftOperator})}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:                 owned,
			&corev1.ConfigMap{}:              owned,
			&corev1.ServiceAccount{}:         owned,
			&rbacv1.Role{}:                   owned,
			&rbacv1.RoleBinding{}:            owned,
			&rbacv1.ClusterRole{}:            owned,
			&rbacv1.ClusterRoleBinding{}:     owned,
			&networkingv1.NetworkPolicy{}:    owned,
			&corev1.Namespace{}:              {Label: labels.SelectorFromSet(labels.Set{hyperv1.HostedControlPlaneLabel: "true"})},
			&appsv1.Deployment{}:             {Label: labels.SelectorFromSet(labels.Set{names.ManagedByLabel: names.ControlPlaneOperator})},
			&appsv1.StatefulSet{}:            {Label: labels.SelectorFromSet(labels.Set{names.ManagedByLabel: names.ControlPlaneOperator})},
			&batchv1.Job{}:                   owned,
			&hyperv1.ControlPlaneComponent{}: owned,
			&clusterv1.Cluster{}:             owned,
			&clusterv1.MachineDeployment{}:   owned,
			&clusterv1.MachineSet{}:          owned,
			&clusterv1.Machine{}:             owned,
			&clusterv1.MachineHealthCheck{}:  owned,
			&corev1.Node{}:                   {Transform: admission.KeepNode},
			&discoveryv1.EndpointSlice{}: {
				Namespaces: map[string]cache.Config{management.APIEndpoints.Namespace: {FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, management.APIEndpoints.Name)}},
			},
			&corev1.Pod{}: {Transform: admission.KeepPod},
		},
	}
}

// SetupWithManager registers the controller. referenced comes from NewSourceCache and has been added to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, referenced cache.Cache) error {
	ours := handler.EnqueueRequestsFromMapFunc(byAnnotation)
	b := ctrl.NewControllerManagedBy(mgr).Named("hostedcluster").
		For(&hyperv1.HostedCluster{}, builder.WithPredicates(specOrMetadataChanged())).
		Watches(&hyperv1.HostedControlPlane{}, ours).
		Watches(&hyperv1.NodePool{}, handler.EnqueueRequestsFromMapFunc(byClusterName), builder.WithPredicates(changes.Of(seenOfPool))).
		Watches(&corev1.Namespace{}, ours).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.everyone), builder.WithPredicates(management.APIMoved())).
		Watches(&corev1.Secret{}, ours).
		Watches(&hyperv1.ControlPlaneComponent{}, ours).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.byDeployment), builder.WithPredicates(deploymentMatters()))
	if c := r.Admission; c != nil {
		room := handler.EnqueueRequestsFromMapFunc(c.Requests)
		b = b.Watches(&corev1.Pod{}, room, builder.WithPredicates(admission.RoomChanged())).Watches(&corev1.Node{}, room, builder.WithPredicates(admission.RoomChanged())).
			WatchesRawSource(source.Channel(c.Wake, &handler.EnqueueRequestForObject{}))
	}
	if r.EtcdRecovery {
		b = b.Watches(&batchv1.Job{}, ours).
			Watches(&appsv1.StatefulSet{}, handler.EnqueueRequestsFromMapFunc(r.byDeployment), builder.WithPredicates(etcdMatters()))
	}
	if r.AuditLogs {
		b = b.Watches(&auditlogv1alpha1.AuditLogPersistenceConfig{}, handler.EnqueueRequestsFromMapFunc(r.everyone), builder.WithPredicates(changes.Of(auditlogs.Seen)))
	}
	if r.PrivateLink {
		b = b.Watches(&hyperv1.AWSEndpointService{}, ours, builder.WithPredicates(changes.Of(seenOfEndpointService)))
	}
	if r.Capabilities.ClusterAPI {
		b = b.Watches(&clusterv1.Cluster{}, ours, builder.WithPredicates(changes.Of(seenOfCluster)))
	}
	for _, obj := range []client.Object{&corev1.ConfigMap{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &networkingv1.NetworkPolicy{}} {
		b = b.Watches(obj, ours, builder.WithPredicates(notCreated()))
	}
	for _, k := range []sources.Kind{sources.Secret, sources.ConfigMap} {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(k.GVK())
		b = b.WatchesRawSource(source.Kind(referenced, obj, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, o *metav1.PartialObjectMetadata) []reconcile.Request {
				return r.bySource(ctx, k, o)
			})))
	}
	b = b.WatchesRawSource(source.Channel(operator.Lookups(r.Releases), &handler.EnqueueRequestForObject{}))
	return b.WithOptions(operator.Workers()).Complete(throttle.Wrap(r, r.Clock, r.awaited))
}

// awaited tells that the control plane has become available or lost that, or that somebody has changed or deletes the HostedCluster.
func (r *Reconciler) awaited(ctx context.Context, req ctrl.Request) bool {
	hc, hcp := &hyperv1.HostedCluster{}, &hyperv1.HostedControlPlane{}
	if err := r.Client.Get(ctx, req.NamespacedName, hc); err != nil || !hc.DeletionTimestamp.IsZero() {
		return true
	}
	c := conditions.Get(hc.Status.Conditions, hyperv1.HostedClusterAvailable)
	if c == nil || c.ObservedGeneration != hc.Generation {
		return true
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: names.NamespaceOf(hc), Name: hc.Name}, hcp); err != nil {
		return c.Status == metav1.ConditionTrue
	}
	return conditions.IsTrue(hcp.Status.Conditions, hyperv1.HostedControlPlaneAvailable) != (c.Status == metav1.ConditionTrue)
}

// seenOfEndpointService is what the conditions of a HostedCluster repeat.
func seenOfEndpointService(obj client.Object) any {
	service, ok := obj.(*hyperv1.AWSEndpointService)
	if !ok {
		return nil
	}
	return service.Status.Conditions
}

// byAnnotation finds the HostedCluster of an object that we made, or that others made for it.
func byAnnotation(_ context.Context, obj client.Object) []reconcile.Request {
	if key, ok := names.ParseBackReference(obj.GetAnnotations()[hyperv1.HostedClusterAnnotation]); ok {
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}

func byClusterName(_ context.Context, obj client.Object) []reconcile.Request {
	np, ok := obj.(*hyperv1.NodePool)
	if !ok || np.Spec.ClusterName == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: np.Namespace, Name: np.Spec.ClusterName}}}
}

// byDeployment finds the HostedCluster of a Deployment of the control plane, by the namespace when it is not ours.
func (r *Reconciler) byDeployment(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.byNamespace(ctx, obj.GetNamespace())
}

func (r *Reconciler) byNamespace(ctx context.Context, name string) []reconcile.Request {
	ns := &corev1.Namespace{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		return nil // not a control-plane namespace, or just gone, of which the Namespace's own event tells
	}
	return byAnnotation(ctx, ns)
}

// bySource finds the HostedClusters that mention an object, or publish it.
func (r *Reconciler) bySource(ctx context.Context, k sources.Kind, obj client.Object) []reconcile.Request {
	list := &hyperv1.HostedClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(obj.GetNamespace())); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		for _, ref := range sources.References(&list.Items[i].Spec) {
			if ref.Kind == k && ref.Name == obj.GetName() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
				break
			}
		}
	}
	if len(requests) > 0 || k != sources.Secret {
		return requests
	}
	return r.byPublished(ctx, obj)
}

// byPublished finds the HostedCluster whose credentials a Secret of the control plane holds.
func (r *Reconciler) byPublished(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.byNamespace(ctx, obj.GetNamespace())
	if len(requests) == 0 {
		return nil
	}
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: requests[0].Name}, hcp); err != nil {
		return nil
	}
	s := hcp.Status
	switch name := obj.GetName(); {
	case s.KubeConfig != nil && s.KubeConfig.Name == name,
		s.CustomKubeconfig != nil && s.CustomKubeconfig.Name == name,
		s.KubeadminPassword != nil && s.KubeadminPassword.Name == name:
		return requests
	}
	return nil
}

// specOrMetadataChanged leaves out the updates of status, which are our own.
func specOrMetadataChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// seenOfPool is what passes read of a NodePool: its spec, whether its machines are gone for hibernation, and whether they can move to another host.
func seenOfPool(obj client.Object) any {
	pool, ok := obj.(*hyperv1.NodePool)
	if !ok {
		return changes.Content(obj)
	}
	var hibernated, migratable hyperv1.NodePoolCondition
	for _, c := range pool.Status.Conditions {
		switch c.Type {
		case hyperv1.HostedClusterHibernated:
			hibernated = c
		case hyperv1.NodePoolKubeVirtLiveMigratableType:
			migratable = c
		}
	}
	return []any{pool.Generation, !pool.DeletionTimestamp.IsZero(), hibernated.Status, migratable.Status, migratable.Message}
}

// seenOfCluster is what passes read of Cluster API's Cluster, and what they would set back. The rest of its status counts machines.
func seenOfCluster(obj client.Object) any {
	cluster, ok := obj.(*clusterv1.Cluster)
	if !ok {
		return changes.Content(obj)
	}
	return []any{changes.MetaOf(cluster, "hypershift.openshift.io/"), cluster.Finalizers, cluster.Spec, capi.Initialized(cluster)}
}

// notCreated leaves out creations: we made the object.
func notCreated() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}
}

// etcdMatters: an etcd whose number of ready members has changed.
func etcdMatters() predicate.Predicate {
	ready := func(obj client.Object) int32 {
		set, ok := obj.(*appsv1.StatefulSet)
		if !ok || set.Name != names.Etcd && !strings.HasPrefix(set.Name, names.Etcd+"-") {
			return -1
		}
		return set.Status.ReadyReplicas
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return ready(e.Object) >= 0 },
		UpdateFunc: func(e event.UpdateEvent) bool { return ready(e.ObjectOld) != ready(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return ready(e.Object) >= 0 },
	}
}

// deploymentMatters: those of the control-plane-operator and the ignition server, whose availability is reported.
func deploymentMatters() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetName() == names.IgnitionServer || obj.GetName() == names.ControlPlaneOperator
	})
}
