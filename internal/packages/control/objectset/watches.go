package objectset

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/packages/engine/watch"
)

// workers is how many ObjectSets are worked on at a time. A pass mostly waits for the API server.
const workers = 8

// SetupWithManager adds the controller. Changes of the objects that it owns come from watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, watches *watch.Cache) error {
	kind := r.Scope.Kind("ObjectSet")
	err := ctrl.NewControllerManagedBy(mgr).
		Named(r.Scope.Kind("objectset")).
		// Metadata and status are ours; whoever wants something changes the spec.
		For(r.Scope.Object(&v1alpha1.ObjectSet{}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(r.Scope.Object(&v1alpha1.ObjectSetPhase{})).
		WatchesRawSource(watches.Owned(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: kind}, r.Engine.Rules.Owners, r.Engine.Known)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(outcome.Wrap(r))
	if err != nil {
		return fmt.Errorf("setting up the controller of %ss: %w", kind, err)
	}
	return nil
}
