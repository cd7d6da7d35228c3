package fleet

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/changes"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/fresh"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/sizing"
)

// Setup adds the controllers to an operator that is told to size hosted clusters.
func Setup(mgr ctrl.Manager, shared operator.Shared) error {
	if os.Getenv(EnvSizeTagging) != "1" {
		return retire(mgr, shared, true)
	}
	return Add(mgr, shared)
}

// retire adds what tells that sizes are switched off, or nodes for single clusters alone.
func retire(mgr ctrl.Manager, shared operator.Shared, sizes bool) error {
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	return (&Retirer{Client: mgr.GetClient(), Live: direct, Clock: shared.Clock, Operator: scope.Identity{PrivateCAPI: shared.PrivateCAPI, Scope: shared.Scope}, Sizes: sizes}).setup(mgr)
}

// Add adds the controllers.
func Add(mgr ctrl.Manager, shared operator.Shared) error {
	c := fresh.New(mgr.GetClient(), shared.Clock, hyperv1.GroupVersion.WithKind("HostedCluster"))
	recorder := mgr.GetEventRecorder(names.HypershiftOperator)
	identity := scope.Identity{PrivateCAPI: shared.PrivateCAPI, Scope: shared.Scope}
	metrics := NewMetrics(mgr.GetClient(), shared.Clock)
	if err := ctrlmetrics.Registry.Register(metrics); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) { // by another operator of a test
		return err
	}
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	sizer := &Sizer{Client: c, Clock: shared.Clock, Events: recorder, Operator: identity, Metrics: metrics}
	scheduler := &Scheduler{Client: c, Clock: shared.Clock, Events: recorder, Operator: identity}
	if shared.DedicatedNodes {
		scheduler.Live, scheduler.Image, scheduler.Released = direct, shared.OperatorImage, make(chan event.GenericEvent, 1)
	}
	errs := []error{sizer.setup(mgr), scheduler.setup(mgr)}
	if shared.DedicatedNodes {
		errs = append(errs, (&Warmer{Client: c, Live: scheduler.Live, Image: shared.OperatorImage, Scheduler: scheduler}).setup(mgr))
	} else {
		errs = append(errs, retire(mgr, shared, false))
	}
	errs = append(errs, (&Recommender{Client: c, Live: direct, Clock: shared.Clock, Events: recorder, Operator: identity}).setup(mgr))
	if shared.Scope == nil || *shared.Scope != hyperv1.LegacyScope { // the operator for clusters of before runs beside this one
		errs = append(errs, (&Validator{Client: mgr.GetClient(), Clock: shared.Clock, Events: recorder}).setup(mgr))
	}
	return errors.Join(errs...)
}

// oneByOne: a decision has to know those before it.
func oneByOne() controller.Options {
	o := operator.Workers()
	o.MaxConcurrentReconciles = 1
	return o
}

// atStart has a controller make one pass when it starts.
func atStart(name string) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
		return nil
	})
}

// setup has the Retirer look at hosted clusters when it starts, and when those conditions change that it writes, as by an operator of before that still ran.
func (r *Retirer) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named(retirerName).
		For(&hyperv1.HostedCluster{}, builder.WithPredicates(changes.Of(seenByRetirer))).WatchesRawSource(atStart("placeholders")).
		WithOptions(operator.Workers()).Complete(outcome.Wrap(r))
}

func (v *Validator) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named(validatorName).
		For(&schedulingv1alpha1.ClusterSizingConfiguration{}).WatchesRawSource(atStart(sizing.ConfigurationName)).
		WithOptions(oneByOne()).Complete(outcome.Wrap(v))
}

func (s *Sizer) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named(sizerName).
		For(&hyperv1.HostedCluster{}, builder.WithPredicates(changes.Of(seenBySizer))).
		Watches(&hyperv1.HostedControlPlane{}, handler.EnqueueRequestsFromMapFunc(byAnnotation), builder.WithPredicates(changes.Of(nodesOf))).
		Watches(&hyperv1.NodePool{}, handler.EnqueueRequestsFromMapFunc(byClusterName), builder.WithPredicates(changes.Of(replicasOf))).
		Watches(&schedulingv1alpha1.ClusterSizingConfiguration{}, handler.EnqueueRequestsFromMapFunc(everyone(s.Client)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(oneByOne()).Complete(outcome.Wrap(s))
}

func (s *Scheduler) setup(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).Named(schedulerName)
	if s.Live != nil {
		b = b.Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(s.byNode), builder.WithPredicates(changes.Of(seenOfNode))).WatchesRawSource(s.orphaned())
	}
	return b.
		For(&hyperv1.HostedCluster{}, builder.WithPredicates(changes.Of(seenByScheduler))).
		Watches(&schedulingv1alpha1.ClusterSizingConfiguration{}, handler.EnqueueRequestsFromMapFunc(everyone(s.Client)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(oneByOne()).Complete(outcome.Wrap(s))
}

func (r *Recommender) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named(recommenderName).
		For(&hyperv1.HostedCluster{}, builder.WithPredicates(changes.Of(seenByScheduler))).
		Watches(&schedulingv1alpha1.ClusterSizingConfiguration{}, handler.EnqueueRequestsFromMapFunc(everyone(r.Client)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(oneByOne()).Complete(outcome.Wrap(r))
}

// setup has the Warmer look when sizes change, when a hosted cluster takes a pair or gives it back, and when there are nodes in other zones.
func (w *Warmer) setup(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: sizing.ConfigurationName}}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named(warmerName).
		Watches(&schedulingv1alpha1.ClusterSizingConfiguration{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&hyperv1.HostedCluster{}, all, builder.WithPredicates(changes.Of(placedOf))).
		Watches(&corev1.Node{}, all, builder.WithPredicates(changes.Of(zoneOf))).
		WatchesRawSource(source.Channel(w.Scheduler.Released, all)).
		WithOptions(oneByOne()).Complete(outcome.Wrap(w))
}

// zoneOf is what the Warmer reads of a node.
func zoneOf(node client.Object) any {
	if node.GetLabels()[hyperv1.RequestServingComponentLabel] != "true" {
		return nil
	}
	return node.GetLabels()[corev1.LabelTopologyZone]
}

// placedOf changes when a hosted cluster takes a pair of nodes or gives it back.
func placedOf(obj client.Object) any {
	if hc, ok := obj.(*hyperv1.HostedCluster); ok {
		return conditions.Get(hc.Status.Conditions, hyperv1.RequestServingNodesReady)
	}
	return nil
}

// seenByRetirer is what the Retirer reads of a HostedCluster.
func seenByRetirer(obj client.Object) any {
	hc, ok := obj.(*hyperv1.HostedCluster)
	if !ok {
		return nil
	}
	seen := []any{hc.Annotations, hc.Spec.PausedUntil}
	for _, t := range append(slices.Clone(sizing.Types), hyperv1.RequestServingNodesReady) {
		seen = append(seen, conditions.Get(hc.Status.Conditions, t))
	}
	return seen
}

// seenBySizer is what the Sizer reads of a HostedCluster.
func seenBySizer(obj client.Object) any {
	hc, ok := obj.(*hyperv1.HostedCluster)
	if !ok {
		return nil
	}
	seen := []any{seenByScheduler(obj), conditions.IsTrue(hc.Status.Conditions, hyperv1.KubeAPIServerAvailable)}
	for _, t := range sizing.Types {
		seen = append(seen, conditions.Get(hc.Status.Conditions, t))
	}
	return seen
}

// seenByScheduler is what the Scheduler reads of a HostedCluster.
func seenByScheduler(obj client.Object) any {
	hc, ok := obj.(*hyperv1.HostedCluster)
	if !ok {
		return nil
	}
	return []any{hc.Labels[hyperv1.HostedClusterSizeLabel], hc.Annotations, conditions.Get(hc.Status.Conditions, hyperv1.RequestServingNodesReady), hc.Spec.PausedUntil, hc.DeletionTimestamp.IsZero()}
}

// seenOfNode is what the Scheduler reads of a node.
func seenOfNode(obj client.Object) any {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return nil
	}
	return []any{n.Labels, n.Spec.Taints, usable(n)}
}

// byNode finds the cluster that a node belongs to, and all that have nodes of their own where it is nobody's: one may wait for it.
func (s *Scheduler) byNode(ctx context.Context, obj client.Object) []reconcile.Request {
	labels := obj.GetLabels()
	if labels[hyperv1.RequestServingComponentLabel] != "true" {
		return nil
	}
	if name, namespace := labels[hyperv1.ClusterNameLabel], labels[hyperv1.ClusterNamespaceLabel]; name != "" && namespace != "" {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
	}
	list := &hyperv1.HostedClusterList{}
	if err := s.Client.List(ctx, list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing HostedClusters for a changed node")
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if dedicated(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

func nodesOf(obj client.Object) any {
	if hcp, ok := obj.(*hyperv1.HostedControlPlane); ok {
		return hcp.Status.NodeCount
	}
	return nil
}

func replicasOf(obj client.Object) any {
	if np, ok := obj.(*hyperv1.NodePool); ok {
		return []any{np.Spec.ClusterName, np.Spec.Replicas, np.Spec.AutoScaling, np.Status.Replicas, np.DeletionTimestamp.IsZero()}
	}
	return nil
}

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

// everyone are all HostedClusters.
func everyone(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		list := &hyperv1.HostedClusterList{}
		if err := c.List(ctx, list); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "listing HostedClusters for changed sizes")
		}
		requests := make([]reconcile.Request, 0, len(list.Items))
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	}
}
