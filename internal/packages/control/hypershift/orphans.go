package hypershift

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"hcp.internal/api/packages/v1alpha1"

	"hcp.internal/platform/internal/kube/outcome"
)

// orphanCheck is how often a phase that waits for its controller is looked at: whether its namespace goes, no event of its own tells.
const orphanCheck = 10 * time.Second

// Orphans lets go of phases of other classes that are deleted in a namespace that is deleted, too. Their cluster and their controller go
// with the namespace, so that nobody is left to remove the finalizer. The controller of ObjectSets does so for those that have a
// parent; here it is done for all.
type Orphans struct {
	Client client.Client // cached reads, writes
	Live   client.Reader // past the cache, as what is decided can't be undone
}

// Reconcile implements reconcile.Reconciler.
func (r *Orphans) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	osp := &v1alpha1.ObjectSetPhase{}
	if err := r.Client.Get(ctx, req.NamespacedName, osp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !waits(osp) {
		return ctrl.Result{}, nil
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.Live.Get(ctx, client.ObjectKey{Name: osp.Namespace}, ns)
	if err != nil && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, fmt.Errorf("reading namespace %s: %w", osp.Namespace, err)
	}
	if err == nil && ns.DeletionTimestamp.IsZero() {
		return ctrl.Result{RequeueAfter: orphanCheck}, nil
	}
	rest := slices.DeleteFunc(slices.Clone(osp.Finalizers), func(f string) bool { return f == v1alpha1.CachedFinalizer })
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": rest, "resourceVersion": osp.ResourceVersion}})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("encoding a patch: %w", err)
	}
	answer := &v1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Namespace: osp.Namespace, Name: osp.Name}}
	if err := r.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, fmt.Errorf("letting go of ObjectSetPhase %s: %w", req, err)
	}
	return ctrl.Result{}, nil
}

// waits says whether a phase is deleted and waits for a controller that is not part of this process.
func waits(obj client.Object) bool {
	class := obj.GetLabels()[v1alpha1.PhaseClassLabel]
	return !obj.GetDeletionTimestamp().IsZero() && class != "" && class != v1alpha1.DefaultPhaseClass && slices.Contains(obj.GetFinalizers(), v1alpha1.CachedFinalizer)
}

// SetupWithManager adds the controller.
func (r *Orphans) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("objectsetphase-orphans").
		For(&v1alpha1.ObjectSetPhase{}, builder.WithPredicates(predicate.NewPredicateFuncs(waits))).
		Complete(outcome.Wrap(r))
}
