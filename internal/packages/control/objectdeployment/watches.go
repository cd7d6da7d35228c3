package objectdeployment

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/packages/engine/scope"
)

// controllerIndex finds ObjectSets by the UID of their controller, and those without one by noController. Without it each pass would go
// through the revisions of all deployments.
const (
	controllerIndex = "controller"
	noController    = "none"
)

// workers is how many deployments are worked on at a time. A pass mostly waits for the API server.
const workers = 4

// settle is how long a deployment waits after an event of a revision: more follow at once.
const settle = 50 * time.Millisecond

// IndexOwners adds the index that the Reconciler reads by.
func IndexOwners(ctx context.Context, indexer client.FieldIndexer, s scope.Scope) error {
	err := indexer.IndexField(ctx, s.Object(&v1alpha1.ObjectSet{}), controllerIndex, func(obj client.Object) []string {
		if controller := metav1.GetControllerOfNoCopy(obj); controller != nil {
			return []string{string(controller.UID)}
		}
		return []string{noController}
	})
	if err != nil {
		return fmt.Errorf("indexing %ss: %w", s.Kind("ObjectSet"), err)
	}
	return nil
}

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := IndexOwners(ctx, mgr.GetFieldIndexer(), r.Scope); err != nil {
		return err
	}
	kind := r.Scope.Kind("ObjectDeployment")
	err := ctrl.NewControllerManagedBy(mgr).
		Named(r.Scope.Kind("objectdeployment")).
		For(r.Scope.Object(&v1alpha1.ObjectDeployment{}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(r.Scope.Object(&v1alpha1.ObjectSet{}), revisions(kind)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(outcome.Wrap(r))
	if err != nil {
		return fmt.Errorf("setting up the controller of %ss: %w", kind, err)
	}
	return nil
}

// revisions maps ObjectSets to the deployment that controls them or, when nobody does, to the one that their label names.
func revisions(kind string) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(obj client.Object, q queue) {
		name := obj.GetLabels()[v1alpha1.ObjectDeploymentLabel]
		if controller := metav1.GetControllerOfNoCopy(obj); controller != nil {
			if controller.Kind != kind {
				return
			}
			name = controller.Name
		}
		if name != "" {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}, settle)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				enqueue(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}
