package fleet

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/sizing"
)

const (
	retirerName = "hostedclustersizingoff"
	// NodesSwitchedOff is the reason of RequestServingNodesReady where nodes for single clusters were switched off.
	NodesSwitchedOff = "DedicatedNodesAreOff"
)

// Retirer is there where sizes are switched off, or nodes for single clusters, and leaves nothing that tells otherwise: conditions of hosted clusters say so, and placeholders
// go, which would have nodes added that nobody takes. What clusters run on and with stays: nodes, claims, labels and annotations.
type Retirer struct {
	Client client.Client
	// Live reads and writes without a cache.
	Live     client.Client
	Clock    clock.PassiveClock
	Operator scope.Identity
	// Sizes: these are switched off, too.
	Sizes bool
}

// Reconcile is for one HostedCluster, or, without a namespace, for placeholders.
func (r *Retirer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Namespace == "" {
		return ctrl.Result{}, r.sweep(ctx)
	}
	now := r.Clock.Now()
	hc, again, err := hosted(ctx, r.Client, req.NamespacedName, r.Operator, now)
	if hc == nil || err != nil {
		return ctrl.Result{RequeueAfter: again}, err
	}
	before := hc.DeepCopy()
	if r.Sizes {
		replace(&hc.Status.Conditions, sizing.Off(hc, now))
	}
	if conditions.Get(hc.Status.Conditions, hyperv1.RequestServingNodesReady) != nil {
		c := conditions.New(hyperv1.RequestServingNodesReady, metav1.ConditionUnknown, NodesSwitchedOff,
			"Nodes of its own are switched off: it keeps those that it has, and nobody replaces them; install with --enable-size-tagging and without --enable-dedicated-request-serving-isolation=false again, or see docs/placement.md for how to give them back")
		c.ObservedGeneration = hc.Generation
		conditions.Set(&hc.Status.Conditions, now, c)
	}
	return ctrl.Result{}, patch.Status(ctx, r.Client, before, hc)
}

// sweep removes all placeholders: those of sizes, and those of clusters that lack nodes.
func (r *Retirer) sweep(ctx context.Context) error {
	list, err := placeholders(ctx, r.Live)
	if err != nil {
		return err
	}
	applier := apply.New(r.Live, retirerName)
	var errs []error
	for i := range list {
		errs = append(errs, applier.Delete(ctx, &list[i]))
	}
	return errors.Join(errs...)
}
