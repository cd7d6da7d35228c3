package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/sizing"
)

// Scheduler gives HostedClusters what follows from their sizes. It is the only writer of annotations cluster-scheduled and size-effects, and of
// those that size-effects lists.
type Scheduler struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Events may be nil.
	Events   events.Recorder
	Operator scope.Identity
	// Live reads and writes without a cache; nil: no cluster gets nodes of its own.
	Live client.Client
	// Image is ours, for placeholders of nodes that are missing; empty: there are none.
	Image string
	// Released tells the Warmer that pairs were given back, of which it reads no other event; nil: it isn't told. It has room for one: that is for all.
	Released chan event.GenericEvent
}

// Reconcile brings the annotations of one HostedCluster to those of its size.
func (s *Scheduler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hc, again, err := hosted(ctx, s.Client, req.NamespacedName, s.Operator, s.Clock.Now())
	if hc == nil || err != nil {
		if err == nil && s.Live != nil {
			gone, err := s.gone(ctx, req.NamespacedName)
			if err != nil {
				return ctrl.Result{}, err
			}
			if gone {
				return s.release(ctx, req.NamespacedName)
			}
		}
		return ctrl.Result{RequeueAfter: again}, err
	}
	spec, ok, err := configuration(ctx, s.Client)
	if !ok || err != nil {
		return ctrl.Result{}, err
	}
	size := sizing.Sizes(spec.Sizes).Named(hc.Labels[hyperv1.HostedClusterSizeLabel])
	if size == nil {
		return ctrl.Result{}, nil // not sized yet, or by sizes of before: the label comes next
	}
	if s.Live != nil && dedicated(hc) {
		return s.place(ctx, hc, size)
	}
	had := sizing.IsEffect(hc, hyperv1.RequestServingNodeAdditionalSelectorAnnotation) // nodes of its own
	effects := sizing.Effects(size)
	if s.Live == nil && dedicated(hc) && had { // they were switched off: it keeps those that it has
		effects[hyperv1.RequestServingNodeAdditionalSelectorAnnotation] = hc.Annotations[hyperv1.RequestServingNodeAdditionalSelectorAnnotation]
	}
	if err := s.annotate(ctx, hc, effects); err != nil {
		return ctrl.Result{}, err
	}
	if s.Live == nil || !had && conditions.Get(hc.Status.Conditions, hyperv1.RequestServingNodesReady) == nil {
		return ctrl.Result{}, nil
	}
	result, err := s.release(ctx, req.NamespacedName)
	if err != nil || result.RequeueAfter > 0 {
		return result, err
	}
	before := hc.DeepCopy()
	conditions.Remove(&hc.Status.Conditions, hyperv1.RequestServingNodesReady)
	return ctrl.Result{}, patch.Status(ctx, s.Client, before, hc)
}

// gone says that there is no such HostedCluster. The cache alone doesn't count: it may not have one yet that another operator has given nodes to.
func (s *Scheduler) gone(ctx context.Context, key client.ObjectKey) (bool, error) {
	for _, c := range []client.Reader{s.Client, s.Live} {
		hc, err := read.Optional(ctx, c, key, &hyperv1.HostedCluster{})
		if hc != nil || err != nil {
			return false, err
		}
	}
	return true, nil
}

// annotate writes what differs, and that the cluster is placed.
func (s *Scheduler) annotate(ctx context.Context, hc *hyperv1.HostedCluster, wanted map[string]string) error {
	changes := sizing.Changes(hc, wanted)
	if hc.Annotations[hyperv1.HostedClusterScheduledAnnotation] != "true" {
		yes := "true"
		changes[hyperv1.HostedClusterScheduledAnnotation] = &yes
	}
	if len(changes) == 0 {
		return nil
	}
	if err := s.Client.Patch(ctx, hc, patch.Metadata{Annotations: changes}.Patch(), client.FieldOwner(schedulerName)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotating HostedCluster %s with what follows from its size: %w", names.BackReference(hc), err)
	}
	keys := slices.Sorted(maps.Keys(changes))
	ctrl.LoggerFrom(ctx).Info("gave a hosted cluster what follows from its size", "annotations", keys)
	if len(keys) > 1 || keys[0] != hyperv1.HostedClusterScheduledAnnotation {
		events.Event(s.Events, hc, false, "SizeEffectsApplied", "Size", "What follows from the size changed: "+strings.Join(keys, ", "))
	}
	return nil
}
