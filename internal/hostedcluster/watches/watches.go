package watches

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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/kube/changes"
	"hcp.internal/platform/internal/kube/conditions"
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

// Requests find the HostedClusters that an object concerns.
type Requests struct{ Reader client.Reader }

// Awaited tells that the control plane has become available or lost that, or that somebody has changed or deletes the HostedCluster.
func (r Requests) Awaited(ctx context.Context, req ctrl.Request) bool {
	hc, hcp := &hyperv1.HostedCluster{}, &hyperv1.HostedControlPlane{}
	if err := r.Reader.Get(ctx, req.NamespacedName, hc); err != nil || !hc.DeletionTimestamp.IsZero() {
		return true
	}
	c := conditions.Current(hc.Status.Conditions, hyperv1.HostedClusterAvailable, hc.Generation)
	if c == nil {
		return true
	}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: names.NamespaceOf(hc), Name: hc.Name}, hcp); err != nil {
		return c.Status == metav1.ConditionTrue
	}
	return conditions.IsTrue(hcp.Status.Conditions, hyperv1.HostedControlPlaneAvailable) != (c.Status == metav1.ConditionTrue)
}

// SeenOfEndpointService is what the conditions of a HostedCluster repeat.
func SeenOfEndpointService(obj client.Object) any {
	switch link := obj.(type) {
	case *hyperv1.AWSEndpointService:
		return link.Status.Conditions
	case *hyperv1.AzurePrivateLinkService:
		return link.Status.Conditions
	}
	return nil
}

// ByAnnotation finds the HostedCluster of an object that we made, or that others made for it.
func ByAnnotation(_ context.Context, obj client.Object) []reconcile.Request {
	if key, ok := names.ParseBackReference(obj.GetAnnotations()[hyperv1.HostedClusterAnnotation]); ok {
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}

// ByClusterName finds the HostedCluster of a NodePool.
func ByClusterName(_ context.Context, obj client.Object) []reconcile.Request {
	np, ok := obj.(*hyperv1.NodePool)
	if !ok || np.Spec.ClusterName == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: np.Namespace, Name: np.Spec.ClusterName}}}
}

// ByDeployment finds the HostedCluster of a Deployment of the control plane, by the namespace when it is not ours.
func (r Requests) ByDeployment(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.byNamespace(ctx, obj.GetNamespace())
}

func (r Requests) byNamespace(ctx context.Context, name string) []reconcile.Request {
	ns := &corev1.Namespace{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		return nil // not a control-plane namespace, or just gone, of which the Namespace's own event tells
	}
	return ByAnnotation(ctx, ns)
}

// BySource finds the HostedClusters that mention an object, or publish it.
func (r Requests) BySource(ctx context.Context, k sources.Kind, obj client.Object) []reconcile.Request {
	clusters := &hyperv1.HostedClusterList{}
	if err := r.Reader.List(ctx, clusters, client.InNamespace(obj.GetNamespace())); err != nil {
		return nil
	}
	var list []reconcile.Request
	for i := range clusters.Items {
		for _, ref := range sources.References(&clusters.Items[i].Spec) {
			if ref.Kind == k && ref.Name == obj.GetName() {
				list = append(list, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])})
				break
			}
		}
	}
	if len(list) > 0 || k != sources.Secret {
		return list
	}
	return r.byPublished(ctx, obj)
}

// byPublished finds the HostedCluster whose credentials a Secret of the control plane holds.
func (r Requests) byPublished(ctx context.Context, obj client.Object) []reconcile.Request {
	list := r.byNamespace(ctx, obj.GetNamespace())
	if len(list) == 0 {
		return nil
	}
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: list[0].Name}, hcp); err != nil {
		return nil
	}
	s := hcp.Status
	switch name := obj.GetName(); {
	case s.KubeConfig != nil && s.KubeConfig.Name == name,
		s.CustomKubeconfig != nil && s.CustomKubeconfig.Name == name,
		s.KubeadminPassword != nil && s.KubeadminPassword.Name == name:
		return list
	}
	return nil
}

// SpecOrMetadataChanged leaves out the updates of status, which are our own.
func SpecOrMetadataChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// SeenOfPool is what passes read of a NodePool: its spec, whether its machines are gone for hibernation, and whether they can move to another host.
func SeenOfPool(obj client.Object) any {
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

// SeenOfCluster is what passes read of Cluster API's Cluster, and what they would set back. The rest of its status counts machines.
func SeenOfCluster(obj client.Object) any {
	cluster, ok := obj.(*clusterv1.Cluster)
	if !ok {
		return changes.Content(obj)
	}
	return []any{changes.MetaOf(cluster, "hypershift.openshift.io/"), cluster.Finalizers, cluster.Spec, capi.Initialized(cluster)}
}

// NotCreated leaves out creations: we made the object.
func NotCreated() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}
}

// EtcdMatters: an etcd whose number of ready members has changed.
func EtcdMatters() predicate.Predicate {
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

// DeploymentMatters: those of the control-plane-operator and the ignition server, whose availability is reported.
func DeploymentMatters() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetName() == names.IgnitionServer || obj.GetName() == names.ControlPlaneOperator
	})
}

// Everyone asks for a pass of each hosted cluster, whose policies name the management cluster's API servers.
func (r Requests) Everyone(ctx context.Context, _ client.Object) (list []reconcile.Request) {
	clusters := &hyperv1.HostedClusterList{}
	if err := r.Reader.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing hosted clusters after the management API servers moved")
		return nil
	}
	for i := range clusters.Items {
		list = append(list, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])})
	}
	return list
}

// ClusterOf finds whose control plane an object belongs to, so that what is wrong with it is told of the HostedCluster, too.
func ClusterOf(reader client.Reader) func(ctx context.Context, obj client.Object) *corev1.ObjectReference {
	return func(ctx context.Context, obj client.Object) *corev1.ObjectReference {
		ns, hc := &corev1.Namespace{}, &hyperv1.HostedCluster{}
		if reader.Get(ctx, client.ObjectKey{Name: obj.GetNamespace()}, ns) != nil {
			return nil
		}
		key, ok := names.ParseBackReference(ns.Annotations[hyperv1.HostedClusterAnnotation])
		if !ok || reader.Get(ctx, key, hc) != nil {
			return nil
		}
		return &corev1.ObjectReference{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster", Namespace: key.Namespace, Name: key.Name, UID: hc.UID}
	}
}
