package nodepool

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/changes"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/kube/throttle"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/operator"
)

// Setup registers the controller with the operator that shared describes.
func Setup(mgr ctrl.Manager, shared operator.Shared) error {
	if err := registerMetrics(ctrlmetrics.Registry); err != nil {
		return err
	}
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: shared.Clock, Releases: shared.Releases, NewToken: uuid.NewString,
		ClusterAPI: shared.Capabilities.ClusterAPI, Scope: shared.Scope, PrivateCAPI: shared.PrivateCAPI, Platforms: shared.Platforms, Events: mgr.GetEventRecorder(names.HypershiftOperator),
	}
	r.Journal = &journal.Book{Client: r.Client, Live: r.Live, Clock: r.Clock}
	return r.SetupWithManager(mgr, shared.Sources)
}

// SetupWithManager registers the controller and its indexes. sources comes from operator.NewSourceCache and has been added to the
// manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, sources cache.Cache) error {
	if err := r.index(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r.Indexed = true
	b := ctrl.NewControllerManagedBy(mgr).Named("nodepool").
		For(&hyperv1.NodePool{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&hyperv1.HostedCluster{}, handler.EnqueueRequestsFromMapFunc(r.byCluster), builder.WithPredicates(changes.Of(seenOfCluster))).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(byAnnotation), builder.WithPredicates(changes.Of(changes.Content)))
	if r.ClusterAPI {
		for _, obj := range []client.Object{&clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}, &clusterv1.Machine{}, &clusterv1.MachineHealthCheck{}} {
			b = b.Watches(obj, handler.EnqueueRequestsFromMapFunc(byAnnotation), builder.WithPredicates(changes.Of(machines.Seen)))
		}
	}
	configMap := &metav1.PartialObjectMetadata{}
	configMap.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	b = b.WatchesRawSource(source.Kind(sources, configMap, handler.TypedEnqueueRequestsFromMapFunc(
		func(ctx context.Context, o *metav1.PartialObjectMetadata) []reconcile.Request {
			return r.byConfigMap(ctx, o)
		})))
	b = b.WatchesRawSource(source.Channel(operator.Lookups(r.Releases), handler.EnqueueRequestsFromMapFunc(r.byCluster)))
	return b.WithOptions(operator.Workers()).Complete(throttle.Wrap(r, r.Clock, r.urgent))
}

// urgent tells that somebody deletes the pool or has changed it since the last pass.
func (r *Reconciler) urgent(ctx context.Context, req ctrl.Request) bool {
	pool := &hyperv1.NodePool{}
	if err := r.Client.Get(ctx, req.NamespacedName, pool); err != nil || !pool.DeletionTimestamp.IsZero() {
		return true
	}
	c := findCondition(pool.Status.Conditions, hyperv1.NodePoolReadyConditionType)
	return c == nil || c.ObservedGeneration != pool.Generation
}

// seenOfCluster is what passes read of a HostedCluster. The rest of its status counts what its control plane does.
func seenOfCluster(obj client.Object) any {
	hc, ok := obj.(*hyperv1.HostedCluster)
	if !ok {
		return changes.Content(obj)
	}
	s := hc.Status
	hibernated := ""
	if c := meta.FindStatusCondition(s.Conditions, hyperv1.HostedClusterHibernated); c != nil {
		hibernated = c.Reason
	}
	return []any{hibernated, hc.Annotations, !hc.DeletionTimestamp.IsZero(), hc.Spec, s.IgnitionEndpoint, s.KubeConfig, s.Version, s.Platform}
}

// index lets a pass read what belongs to its pool without looking at anything else.
func (r *Reconciler) index(indexer client.FieldIndexer) error {
	byKey := func(obj client.Object) []string {
		if key := poolOf(obj); key != "" {
			return []string{key}
		}
		return nil
	}
	kinds := []client.Object{&corev1.Secret{}}
	if r.ClusterAPI {
		kinds = append(kinds, &clusterv1.Machine{}, &clusterv1.MachineSet{})
	}
	for _, obj := range kinds {
		if err := indexer.IndexField(context.TODO(), obj, poolIndex, byKey); err != nil { // the context is not used: nothing runs yet
			return fmt.Errorf("indexing %T by NodePool: %w", obj, err)
		}
	}
	err := indexer.IndexField(context.TODO(), &hyperv1.NodePool{}, configIndex, func(obj client.Object) []string {
		var names []string
		spec := obj.(*hyperv1.NodePool).Spec
		for _, ref := range slices.Concat(spec.Config, spec.TuningConfig) {
			names = append(names, ref.Name)
		}
		return names
	})
	if err != nil {
		return fmt.Errorf("indexing NodePools by configuration: %w", err)
	}
	return nil
}

// configIndex finds the NodePools that a ConfigMap configures.
const configIndex = "config"

func poolOf(obj client.Object) string {
	if ms, ok := obj.(*clusterv1.MachineSet); ok {
		return poolOfSet(ms)
	}
	return obj.GetAnnotations()[hyperv1.NodePoolAnnotation]
}

// byAnnotation finds the NodePool of an object that we, or others for us, made.
func byAnnotation(_ context.Context, obj client.Object) []reconcile.Request {
	if key, ok := names.ParseBackReference(poolOf(obj)); ok {
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}

// byCluster finds the NodePools of a HostedCluster.
func (r *Reconciler) byCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	pools := &hyperv1.NodePoolList{}
	if err := r.Client.List(ctx, pools, client.InNamespace(obj.GetNamespace())); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range pools.Items {
		if np := &pools.Items[i]; np.Spec.ClusterName == obj.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(np)})
		}
	}
	return requests
}

// byConfigMap finds the NodePools that name a ConfigMap, and those of the control plane in whose namespace it is.
func (r *Reconciler) byConfigMap(ctx context.Context, obj client.Object) []reconcile.Request {
	pools := &hyperv1.NodePoolList{}
	if err := r.Client.List(ctx, pools, client.InNamespace(obj.GetNamespace()), client.MatchingFields{configIndex: obj.GetName()}); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range pools.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])})
	}
	if len(requests) > 0 || !coreConfigName(obj.GetName()) {
		return requests
	}
	ns := &corev1.Namespace{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: obj.GetNamespace()}, ns); err != nil {
		return nil // no control-plane namespace
	}
	if key, ok := names.ParseBackReference(ns.Annotations[hyperv1.HostedClusterAnnotation]); ok {
		return r.byCluster(ctx, &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	}
	return nil
}
