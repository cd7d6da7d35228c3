// Package gateway leads the names of hosted clusters through a Gateway of the management cluster: a TLSRoute for each name, in the namespace of the control plane. It is the form of
// the shared endpoint for management clusters that have Gateway API, and runs in the hypershift-operator when EnvGateway names a Gateway.
package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/changes"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/sharedingress"
)

// EnvGateway is the variable that names the Gateway, as NAMESPACE/NAME.
const EnvGateway = "SHARED_GATEWAY"

const (
	name = "sharedgateway"
	// routeLabel is on TLSRoutes that are ours.
	routeLabel = "hypershift.openshift.io/shared-gateway"
	// lookAgain is when Services are looked for again that were not there.
	lookAgain = 30 * time.Second
	// repair is when routes are compared again that others may have changed or deleted: there is no watch for them, since their kind may come and go.
	repair    = 10 * lookAgain
	maxRoutes = 5000
)

var tlsRoute = schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "TLSRoute"}

// Reconciler keeps the TLSRoutes of the hosted clusters that are its operator's. Nobody else writes those with its label, but for the same in another operator, for the
// hosted clusters that are that one's.
type Reconciler struct {
	// Client reads HostedClusters from the cache; Live everything else without one, and writes.
	Client client.Reader
	Live   client.Client
	Mapper meta.RESTMapper
	// Gateway that routes belong to.
	Gateway client.ObjectKey
	// Operator tells which hosted clusters are ours.
	Operator scope.Identity
	// Events may be nil.
	Events events.Recorder

	told map[string]bool   // narrowed clusters that an event told of
	led  map[string]string // the namespace that each name was led to by the last pass, by this operator or another
}

// Parse reads NAMESPACE/NAME.
func Parse(text string) (client.ObjectKey, error) {
	namespace, gateway, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || gateway == "" || strings.Contains(gateway, "/") {
		return client.ObjectKey{}, fmt.Errorf("%s is %q: write NAMESPACE/NAME of a Gateway", EnvGateway, text)
	}
	return client.ObjectKey{Namespace: namespace, Name: gateway}, nil
}

// Setup adds the controller to an operator that is told of a Gateway.
func Setup(mgr ctrl.Manager, shared operator.Shared) error {
	text := os.Getenv(EnvGateway)
	if text == "" {
		return nil
	}
	key, err := Parse(text)
	if err != nil {
		return err
	}
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	r := &Reconciler{Client: mgr.GetClient(), Live: live, Mapper: mgr.GetRESTMapper(), Gateway: key, Events: mgr.GetEventRecorder(names.HypershiftOperator),
		Operator: scope.Identity{PrivateCAPI: shared.PrivateCAPI, Scope: shared.Scope}}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: "all"}}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named(name).
		Watches(&hyperv1.HostedCluster{}, all, builder.WithPredicates(changes.Of(r.seen))).
		Watches(&corev1.Namespace{}, all, builder.WithPredicates(changes.Of(func(ns client.Object) any { return ownerOf(ns) }))).
		WithOptions(oneByOne()).Complete(outcome.Wrap(r))
}

// seen is what a pass reads of a HostedCluster, also whose it is: routes of one that was moved from another operator are this one's to make.
func (r *Reconciler) seen(obj client.Object) any {
	return []any{sharedingress.PublishedBy(obj), r.Operator.Owns(obj.GetAnnotations())}
}

func oneByOne() controller.Options {
	o := operator.Workers()
	o.MaxConcurrentReconciles = 1 // each pass is for all
	return o
}

// Reconcile makes the routes of all hosted clusters of this operator, and removes those that nobody asks for. Whose a name is depends on the others, too.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	mapping, err := r.Mapper.RESTMapping(tlsRoute)
	if meta.IsNoMatchError(err) {
		ctrl.LoggerFrom(ctx).Info("the management cluster has no TLSRoutes: install Gateway API, with the standard channel of 1.5 or the experimental one")
		return ctrl.Result{RequeueAfter: repair}, nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("looking for TLSRoutes: %w", err)
	}
	clusters := &hyperv1.HostedClusterList{}
	if err := r.Client.List(ctx, clusters); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing HostedClusters: %w", err)
	}
	owners, err := r.owners(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	// A cluster without a namespace has no server, and may have been refused: it keeps no name from another.
	made := slices.DeleteFunc(slices.Clone(clusters.Items), func(hc hyperv1.HostedCluster) bool { return owners[names.NamespaceOf(&hc)] == "" })
	own, problems := sharedingress.Own(made, func(namespace string) string { return owners[namespace] })
	published, more := sharedingress.Names(own, func(host string) string { return r.led[host] })
	for _, p := range append(problems, more...) {
		ctrl.LoggerFrom(ctx).Info("a name has no route", "problem", p)
	}
	applier, wanted, waits := apply.New(r.Live, name), map[client.ObjectKey]bool{}, false
	r.led = map[string]string{}
	var errs []error
	for _, p := range published {
		if r.Operator.Owns(p.Cluster.Annotations) != scope.Ours {
			r.led[p.Host] = names.NamespaceOf(p.Cluster) // also while it is being moved, when it is nobody's
			continue
		}
		if r.narrowed(p) {
			continue
		}
		service, port, err := r.server(ctx, p)
		if err != nil || port == 0 {
			waits = waits || err == nil
			errs = append(errs, err)
			continue
		}
		route := r.route(mapping.GroupVersionKind, p, service, port)
		r.led[p.Host] = route.GetNamespace()
		wanted[client.ObjectKeyFromObject(route)] = true
		errs = append(errs, applier.Apply(ctx, route))
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err // what could not be read is not taken away
	}
	if err := r.prune(ctx, mapping.GroupVersionKind, applier, wanted, r.others(clusters.Items, owners)); err != nil {
		return ctrl.Result{}, err
	}
	if waits {
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	if len(wanted) > 0 {
		return ctrl.Result{RequeueAfter: repair}, nil
	}
	return ctrl.Result{}, nil
}

// owners are the HostedClusters, as names.BackReference, that namespaces of control planes say they are of.
func (r *Reconciler) owners(ctx context.Context) (map[string]string, error) {
	list := &corev1.NamespaceList{}
	if err := r.Client.List(ctx, list, client.MatchingLabels{hyperv1.HostedControlPlaneLabel: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing namespaces of control planes: %w", err)
	}
	out := make(map[string]string, len(list.Items))
	for i := range list.Items {
		out[list.Items[i].Name] = ownerOf(&list.Items[i])
	}
	return out, nil
}

func ownerOf(namespace client.Object) string {
	return namespace.GetAnnotations()[hyperv1.HostedClusterAnnotation]
}

// narrowed tells of a hosted cluster that lets only some networks in, which a TLSRoute can't say: through a Gateway everybody would come in.
func (r *Reconciler) narrowed(p sharedingress.Published) bool {
	api := p.Cluster.Spec.Networking.APIServer
	if api == nil || len(api.AllowedCIDRBlocks) == 0 {
		return false
	}
	owner := names.BackReference(p.Cluster)
	if r.told == nil {
		r.told = map[string]bool{}
	}
	if !r.told[owner] {
		r.told[owner] = true
		events.Event(r.Events, p.Cluster, true, "NoSharedRoute", "Publish",
			"spec.networking.apiServer.allowedCIDRBlocks can't be kept by a Gateway, so no name of this hosted cluster is led through it: use `hypershift install --shared-ingress` for it, or let everybody in")
	}
	return true
}

// server finds the Service of a name; port is 0 while there is none.
func (r *Reconciler) server(ctx context.Context, p sharedingress.Published) (service string, port int32, _ error) {
	for _, s := range p.Services {
		svc := &corev1.Service{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: names.NamespaceOf(p.Cluster), Name: s}, svc)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", 0, fmt.Errorf("reading Service %s/%s: %w", names.NamespaceOf(p.Cluster), s, err)
		}
		var ports []int32
		for _, sp := range svc.Spec.Ports {
			ports = append(ports, sp.Port)
		}
		if port := sharedingress.PortOf(ports, p.Port); port != 0 {
			return s, port, nil
		}
	}
	return "", 0, nil
}

// route is the TLSRoute of a name. TLS ends in the control plane.
func (r *Reconciler) route(gvk schema.GroupVersionKind, p sharedingress.Published, service string, port int32) *unstructured.Unstructured {
	sum := sha256.Sum256([]byte(p.Host))
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"parentRefs": []any{map[string]any{"group": gvk.Group, "kind": "Gateway", "namespace": r.Gateway.Namespace, "name": r.Gateway.Name}},
		"hostnames":  []any{p.Host},
		"rules":      []any{map[string]any{"backendRefs": []any{map[string]any{"group": "", "kind": "Service", "name": service, "port": int64(port)}}}},
	}}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(names.NamespaceOf(p.Cluster))
	u.SetName(service + "-" + hex.EncodeToString(sum[:4]))
	u.SetLabels(map[string]string{routeLabel: "true"})
	return u
}

// others are the namespaces that are of hosted clusters of other operators; owners is as in Reconcile.
func (r *Reconciler) others(clusters []hyperv1.HostedCluster, owners map[string]string) map[string]bool {
	out := map[string]bool{}
	for i := range clusters {
		hc := &clusters[i]
		if namespace := names.NamespaceOf(hc); r.Operator.Owns(hc.Annotations) != scope.Ours && owners[namespace] == names.BackReference(hc) {
			out[namespace] = true
		}
	}
	return out
}

// prune removes routes that nobody asks for, except for those in the namespaces of other operators' hosted clusters.
func (r *Reconciler) prune(ctx context.Context, gvk schema.GroupVersionKind, applier *apply.Applier, wanted map[client.ObjectKey]bool, others map[string]bool) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := r.Live.List(ctx, list, client.HasLabels{routeLabel}, client.Limit(maxRoutes)); err != nil {
		return fmt.Errorf("listing TLSRoutes: %w", err)
	}
	var errs []error
	for i := range list.Items {
		u := &list.Items[i]
		if wanted[client.ObjectKeyFromObject(u)] || u.GetDeletionTimestamp() != nil || others[u.GetNamespace()] {
			continue
		}
		mine, err := r.removes(ctx, u.GetNamespace())
		if err == nil && mine {
			err = applier.Delete(ctx, u)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removes says whether routes of a namespace that nobody asks for are this operator's to remove: those of its own hosted clusters, and of those that are gone,
// which the operator for clusters of before leaves to the one beside it. It reads past the cache, which may not have a hosted cluster yet whose route another
// operator has made: nothing would bring that route back.
func (r *Reconciler) removes(ctx context.Context, namespace string) (bool, error) {
	orphans := r.Operator.Scope == nil || *r.Operator.Scope != hyperv1.LegacyScope
	ns, err := read.Optional(ctx, r.Live, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	if ns == nil || err != nil {
		return false, err
	}
	key, ok := names.ParseBackReference(ownerOf(ns))
	if !ok {
		return orphans, nil
	}
	hc, err := read.Optional(ctx, r.Live, key, &hyperv1.HostedCluster{})
	if hc == nil || err != nil {
		return orphans, err
	}
	return r.Operator.Owns(hc.Annotations) == scope.Ours, nil
}
