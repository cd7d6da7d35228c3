package hypershift

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/packages/control/connector"
	"hcp.internal/platform/internal/packages/engine/owner"
)

// Reconciler keeps a connector beside every hosted control plane. It is the only writer of what a connector consists of.
type Reconciler struct {
	// Client reads HostedClusters, Namespaces and Packages from a cache, and writes Packages.
	Client client.Client
	// Parts reads what belongs to connectors from a cache that holds nothing else, and writes it.
	Parts    client.Client
	Settings settings
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	in, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing the connector of %s: %w", req, err)
	}
	p, err := planFor(in, r.Settings)
	if err != nil {
		return ctrl.Result{}, err
	}
	applier := apply.New(r.Parts, v1alpha1.FieldOwner)
	var errs []error
	for _, obj := range p.Delete {
		// With the UID that was seen: a successor of the same name is somebody else's.
		err := r.Client.Delete(ctx, obj, client.Preconditions{UID: ptrTo(obj.GetUID())})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err))
		}
	}
	errs = append(errs, applier.All(ctx, p.Apply...))
	if p.Package != nil {
		errs = append(errs, r.writePackage(ctx, in.Package, p.Package))
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, fmt.Errorf("keeping the connector of %s: %w", req, err)
	}
	return ctrl.Result{}, nil
}

func ptrTo[T any](v T) *T { return &v }

// observe reads caches. One that is behind costs a write that is refused, or another pass.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (observed, error) {
	in := observed{Key: key, Namespace: names.ControlPlaneNamespace(key.Namespace, key.Name)}
	hc := &hyperv1.HostedCluster{}
	switch err := r.Client.Get(ctx, key, hc); {
	case err == nil:
		in.Cluster = hc
	case !apierrors.IsNotFound(err):
		return in, err
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: in.Namespace}, ns); err != nil {
		return in, client.IgnoreNotFound(err)
	}
	in.Present, in.Owner = ns.DeletionTimestamp.IsZero(), ns.Annotations[hyperv1.HostedClusterAnnotation]
	for _, part := range parts() {
		part.SetNamespace(in.Namespace)
		part.SetName(connector.Name)
		err := r.Parts.Get(ctx, client.ObjectKeyFromObject(part), part)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return in, err
		}
		if hostedClusterOf(part) == key {
			in.Parts = append(in.Parts, part)
		}
	}
	p := &v1alpha1.Package{}
	switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: connectorPackage}, p); {
	case err == nil && hostedClusterOf(p) == key:
		in.Package = p
	case client.IgnoreNotFound(err) != nil:
		return in, err
	}
	return in, nil
}

// parts are the kinds that a connector consists of, what runs first.
func parts() []client.Object {
	return []client.Object{&appsv1.Deployment{}, &rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{}}
}

// writePackage creates the Package, or gives it the spec that it shall have. One of this name that was made by somebody else is theirs.
func (r *Reconciler) writePackage(ctx context.Context, have, want *v1alpha1.Package) error {
	if have == nil {
		if err := r.Client.Create(ctx, want, client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
			return fmt.Errorf("creating Package %s: %w", client.ObjectKeyFromObject(want), err)
		}
		return nil
	}
	if equality.Semantic.DeepEqual(have.Spec, want.Spec) {
		return nil
	}
	data, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": have.ResourceVersion},
		{"op": "replace", "path": "/spec", "value": want.Spec},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	err = r.Client.Patch(ctx, have.DeepCopy(), client.RawPatch("application/json-patch+json", data), client.FieldOwner(v1alpha1.FieldOwner))
	if err != nil {
		return fmt.Errorf("updating Package %s: %w", client.ObjectKeyFromObject(want), err)
	}
	return nil
}

// hostedClusterOf is the HostedCluster that an object was made for, empty when it was made for none.
func hostedClusterOf(obj client.Object) client.ObjectKey {
	owners, err := owner.Annotation{}.Read(obj)
	if err != nil {
		return client.ObjectKey{}
	}
	c := owner.Controller(owners)
	if c == nil || c.GroupKind() != hostedCluster.GroupKind() {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
}

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
