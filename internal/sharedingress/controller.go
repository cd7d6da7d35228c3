package sharedingress

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/hostnames"
	"hcp.internal/platform/internal/kube/changes"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/process"
)

// Reconciler keeps the table of a Proxy. It writes nothing.
type Reconciler struct {
	// Client reads from caches, see CacheOptions.
	Client client.Reader
	Proxy  *Proxy

	synced   atomic.Bool
	problems string // that were told last
}

// CacheOptions keep of Services what the table is made of.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Service{}: {Transform: func(obj any) (any, error) {
			svc, ok := obj.(*corev1.Service)
			if !ok {
				return obj, nil
			}
			return &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: svc.Namespace, Name: svc.Name, UID: svc.UID, ResourceVersion: svc.ResourceVersion},
				Spec:       corev1.ServiceSpec{ClusterIP: svc.Spec.ClusterIP, Ports: svc.Spec.Ports},
			}, nil
		}}},
	}
}

// Ready says whether the table was made once: before that nothing would be led anywhere.
func (r *Reconciler) Ready() bool { return r.synced.Load() }

// Reconcile makes the table anew, for all hosted clusters.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	list := &hyperv1.HostedClusterList{}
	if err := r.Client.List(ctx, list); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing HostedClusters: %w", err)
	}
	own, problems := Own(list.Items, func(namespace string) string {
		ns := &metav1.PartialObjectMetadata{}
		ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := r.Client.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
			return "" // not made yet: its own event comes
		}
		return ns.Annotations[hyperv1.HostedClusterAnnotation]
	})
	table, more := MakeTable(own, func(namespace, service string, port int32) (string, bool) {
		svc := &corev1.Service{}
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: service}, svc); err != nil {
			return "", false // not made yet: its own event comes
		}
		return addressOf(svc, port)
	}, r.Proxy.Table())
	problems = append(problems, more...)
	r.Proxy.Use(table)
	r.synced.Store(true)
	if told := strings.Join(problems, "; "); told != r.problems {
		r.problems = told
		ctrl.LoggerFrom(ctx).Info("some hosted clusters are not served as they ask", "problems", told)
	}
	n, clusters := table.Len()
	ctrl.LoggerFrom(ctx).V(1).Info("made the table", "names", n, "clusters", clusters)
	return ctrl.Result{}, nil
}

// addressOf is where a Service is reached: by the wanted port, or by the only one that it has.
func addressOf(svc *corev1.Service, port int32) (string, bool) {
	if svc.Spec.ClusterIP == "" || svc.Spec.ClusterIP == corev1.ClusterIPNone || len(svc.Spec.Ports) == 0 {
		return "", false
	}
	if !slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port }) {
		port = svc.Spec.Ports[0].Port
	}
	return net.JoinHostPort(svc.Spec.ClusterIP, strconv.Itoa(int(port))), true
}

// SetupWithManager registers the controller. Whatever changes, it is one pass for all.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: "all"}}}
	})
	served := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		for _, s := range services {
			if slices.Contains(s.names, obj.GetName()) {
				return true
			}
		}
		return false
	})
	return ctrl.NewControllerManagedBy(mgr).Named("sharedingress").
		Watches(&hyperv1.HostedCluster{}, all, builder.WithPredicates(changes.Of(PublishedBy))).
		WatchesMetadata(&corev1.Namespace{}, all, builder.WithPredicates(changes.Of(func(obj client.Object) any { return obj.GetAnnotations()[hyperv1.HostedClusterAnnotation] }))).
		Watches(&corev1.Service{}, all, builder.WithPredicates(served, changes.Of(changes.Content))).
		WithOptions(process.Workers(1, minBackoff, maxBackoff)).Complete(outcome.Wrap(r))
}

// PublishedBy is what the table reads of a HostedCluster.
func PublishedBy(obj client.Object) any {
	hc, ok := obj.(*hyperv1.HostedCluster)
	if !ok {
		return nil
	}
	return []any{hc.Spec.Services, hc.Spec.KubeAPIServerDNSName, hc.Spec.ClusterID, hc.Spec.Networking.APIServer, hc.DeletionTimestamp.IsZero(), hostnames.Accepted(hc)}
}
