package hostedcontrolplane

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/kube/fresh"
	"hcp.internal/platform/internal/kube/hotloop"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/kube/throttle"
)

// leaseName of the leader election. The holder is the pod, so that a container that is killed takes its own lease up again at once; another pod waits at most the
// lease's duration, or not at all when the old one ended in order.
const leaseName = "control-plane-operator-leader-elect"

// Retries of passes that failed. The first comes soon, because at start-up most failures are races that are over at once.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// newScheme has the kinds that the operator and its components use.
func newScheme() (*runtime.Scheme, error) {
	return process.Scheme(clientgoscheme.AddToScheme, hyperv1.AddToScheme)
}

// newManager makes a manager that sees one namespace. What is read rarely is not cached at all.
func newManager(cfg *rest.Config, o Options) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	options := process.Options{
		Name: names.ControlPlaneOperator, Scheme: scheme, Serve: process.Serve{Metrics: o.MetricsAddr, Health: o.HealthAddr}, HotLoops: hotloop.New(scheme, clock.RealClock{}),
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{o.Namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
		},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Pod{}, &corev1.Event{}, &corev1.Node{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{},
		}}},
	}
	if o.LeaderElect {
		options.Lease = process.NewLease(o.Namespace, leaseName, o.PodName)
	}
	return process.NewManager(cfg, options)
}

// componentKind is listed with what was just written: components depend on the state of others.
var componentKind = hyperv1.GroupVersion.WithKind("ControlPlaneComponent")

// setup makes the controller and its watches.
func setup(mgr manager.Manager, r *Reconciler, wake *waker) error {
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return wake.requests(ctx) })
	own := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &hyperv1.HostedControlPlane{}, handler.OnlyControllerOwner())
	b := ctrl.NewControllerManagedBy(mgr).Named("hostedcontrolplane").
		// The status is ours, but for what rotates encryption keys and what Karpenter counts; the conditions in it that are not do not concern us.
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionBegan{}, rotationMoved{}, karpenterLeaves{}))).
		WatchesRawSource(source.Channel(wake.events, &handler.EnqueueRequestForObject{})).
		WithOptions(process.Workers(1, firstRetry, lastRetry))
	// The hypershift-operator, the PKI operator and users' references bring Secrets and ConfigMaps that have no owner here.
	for _, obj := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}} {
		b = b.Watches(obj, all, builder.WithPredicates(contentChanged{}))
	}
	// The pass that wrote a report has acted on it: components come behind those that they depend on.
	b = b.Watches(&hyperv1.ControlPlaneComponent{}, all, builder.WithPredicates(contentChanged{}, notOurs(r.Client)))
	for _, obj := range []client.Object{
		&corev1.Service{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &policyv1.PodDisruptionBudget{},
		&batchv1.Job{}, &batchv1.CronJob{},
	} {
		b = b.Watches(obj, own, builder.WithPredicates(contentChanged{}))
	}
	// The hypershift-operator's Deployments, this process's own among them, belong to nobody here, and count for Degraded all the same.
	b = b.Watches(&appsv1.Deployment{}, all, builder.WithPredicates(contentChanged{}, predicate.NewPredicateFuncs(countedOfOthers)))
	for _, kind := range []string{"CertificateSigningRequestApproval", "CertificateRevocationRequest"} {
		// They start the operator of break-glass certificates. An old installation does not have them.
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(certificatesv1alpha1.GroupVersion.WithKind(kind))
		if _, err := mgr.GetRESTMapper().RESTMapping(obj.GroupVersionKind().GroupKind(), obj.GroupVersionKind().Version); meta.IsNoMatchError(err) {
			continue
		}
		b = b.Watches(obj, all, builder.WithPredicates(contentChanged{}))
	}
	routes := &metav1.PartialObjectMetadata{}
	routes.SetGroupVersionKind(endpoints.RouteKind)
	if _, err := mgr.GetRESTMapper().RESTMapping(endpoints.RouteKind.GroupKind(), endpoints.RouteKind.Version); err == nil {
		b = b.Watches(routes, own, builder.WithPredicates(contentChanged{})) // their names, and those of components, come from a router
	} else if !meta.IsNoMatchError(err) {
		return fmt.Errorf("looking for the Route kind: %w", err)
	}
	if err := b.Complete(throttle.New(r.pass, r.Clock, r.awaited)); err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	return nil
}

// countedOfOthers tells whether a Deployment counts for the control plane's conditions without being owned by the HostedControlPlane.
func countedOfOthers(o client.Object) bool {
	return o.GetLabels()[names.ManagedByLabel] == names.ControlPlaneOperator && metav1.GetControllerOf(o) == nil
}

// deletionBegan passes the update that sets a deletion timestamp.
type deletionBegan struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (deletionBegan) Update(e event.UpdateEvent) bool {
	return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
}

// rotationMoved passes updates of status.secretEncryption, by which the hosted-cluster-config-operator asks for other keys, and of what nodes trust.
type rotationMoved struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (rotationMoved) Update(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*hyperv1.HostedControlPlane)
	after, ok2 := e.ObjectNew.(*hyperv1.HostedControlPlane)
	return ok1 && ok2 && (!equality.Semantic.DeepEqual(before.Status.SecretEncryption, after.Status.SecretEncryption) ||
		nodesTrust(before) != nodesTrust(after))
}

// karpenterLeaves passes updates of status.autoNode once nobody asks for Karpenter any more: its component goes when nothing is counted there.
type karpenterLeaves struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (karpenterLeaves) Update(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*hyperv1.HostedControlPlane)
	after, ok2 := e.ObjectNew.(*hyperv1.HostedControlPlane)
	return ok1 && ok2 && after.Spec.AutoNode == nil && !equality.Semantic.DeepEqual(before.Status.AutoNode, after.Status.AutoNode)
}

// contentChanged drops the resync of an informer.
type contentChanged struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (contentChanged) Update(e event.UpdateEvent) bool {
	return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() || !equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
}

// notOurs drops what a fresh.Client has just written.
func notOurs(c client.Client) predicate.Predicate {
	own, ok := c.(*fresh.Client)
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !ok || !own.Wrote(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return !ok || !own.Wrote(e.ObjectNew) },
	}
}

// waker enqueues the HostedControlPlane of the namespace for what is no event of its own.
type waker struct {
	reader    client.Reader
	namespace string
	events    chan event.GenericEvent
}

// wakeBuffer is more than the senders, the health checker and the look at the space of etcd, ever have outstanding.
const wakeBuffer = 8

func newWaker(reader client.Reader, namespace string) *waker {
	return &waker{reader: reader, namespace: namespace, events: make(chan event.GenericEvent, wakeBuffer)}
}

// requests names every HostedControlPlane of the namespace; there is one.
func (w *waker) requests(ctx context.Context) []reconcile.Request {
	list := &hyperv1.HostedControlPlaneList{}
	if err := w.reader.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the HostedControlPlane for an event")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// wakeTimeout bounds a read from the cache, which answers at once unless the process is ending.
const wakeTimeout = 5 * time.Second

// Wake causes a pass. It does not block.
func (w *waker) Wake(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	list := &hyperv1.HostedControlPlaneList{}
	if err := w.reader.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
		return // the next pass is at most recheckReady away
	}
	for i := range list.Items {
		select {
		case w.events <- event.GenericEvent{Object: &list.Items[i]}:
		default: // a wake-up is outstanding already
		}
	}
}
