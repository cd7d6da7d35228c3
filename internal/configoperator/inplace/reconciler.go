package inplace

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hold"
	"hcp.internal/platform/internal/release"
)

// Reconciler changes the machines of MachineSets whose target isn't their current configuration.
//
// It is the only writer of the nodes' desiredConfig, of the progress annotations, and, at the end, of the current version.
type Reconciler struct {
	Management client.Client // uncached: it counts nodes under way
	Hosted     client.Client // uncached
	// Image of the daemon that works on nodes; empty: it is in the release that machines are changed to, or nowhere, and upgrades wait.
	Image string
	// Releases reads releases of OpenShift; nil: the hosted cluster has none.
	Releases release.Provider
	Clock    clock.PassiveClock
	// Hold says why no other node is to be begun, if so.
	Hold hold.Func
}

// Matters lets MachineSets through that are changed in place, when what decides about that changes.
func Matters() predicate.Predicate {
	keys := []string{
		hyperv1.NodePoolTargetConfigVersionAnnotation, hyperv1.NodePoolCurrentConfigVersionAnnotation, hyperv1.NodePoolMaxUnavailableAnnotation,
		clusterv1.PausedAnnotation,
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return ours(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return ours(e.ObjectNew) && slices.ContainsFunc(keys, func(k string) bool { return !ptr.Equal(annotation(e.ObjectOld, k), annotation(e.ObjectNew, k)) })
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// Reconcile makes one pass for the MachineSet of the request.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	set := &clusterv1.MachineSet{}
	if err := r.Management.Get(ctx, req.NamespacedName, set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading MachineSet %s: %w", req, err))
	}
	if !set.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	w, err := r.observe(ctx, set)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := planFor(w.Observed)
	err = r.apply(ctx, set, w, plan)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("changing the machines of MachineSet %s: %w", req, err)
	}
	return ctrl.Result{RequeueAfter: plan.Recheck}, nil
}
