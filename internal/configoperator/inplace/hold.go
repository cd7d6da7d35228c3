package inplace

import (
	"context"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hold"
)

// maxControlPlanes bounds what is read of a namespace, which has one.
const maxControlPlanes = 2

// whyHeld says why no other node of a set is to be begun, and after which time to look again. Empty: nothing holds; 0: a change ends it. A paused NodePool has its
// MachineSet annotated, a paused HostedCluster its HostedControlPlane.
func whyHeld(ctx context.Context, management client.Reader, set *clusterv1.MachineSet, holds hold.Func, now time.Time) (reason string, after time.Duration, err error) {
	if annotation(set, clusterv1.PausedAnnotation) != nil {
		return fmt.Sprintf("MachineSet %s is paused", set.Name), 0, nil
	}
	list := &hyperv1.HostedControlPlaneList{}
	if err := management.List(ctx, list, client.InNamespace(set.Namespace), client.Limit(maxControlPlanes)); err != nil {
		return "", 0, fmt.Errorf("listing HostedControlPlanes of %s: %w", set.Namespace, err)
	}
	for i := range list.Items {
		if reason, after := holds(&list.Items[i], now); reason != "" {
			return fmt.Sprintf("HostedControlPlane %s: %s", list.Items[i].Name, reason), after, nil
		}
	}
	return "", 0, nil
}

// SetsOf finds the MachineSets that are changed in place beside an object, such as a HostedControlPlane that is paused or goes on.
func SetsOf(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []ctrl.Request {
		list := &clusterv1.MachineSetList{}
		if err := reader.List(ctx, list, client.InNamespace(o.GetNamespace())); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "listing MachineSets; the next change of one is a pass all the same")
			return nil
		}
		var requests []ctrl.Request
		for i := range list.Items {
			if ours(&list.Items[i]) {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
		return requests
	}
}

// ours tells whether a MachineSet's machines are changed in place.
func ours(set client.Object) bool {
	return set.GetAnnotations()[hyperv1.NodePoolTargetConfigVersionAnnotation] != ""
}
