package privatelinks

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// ControlPlane returns the HostedControlPlane of a namespace. It returns nil when there is none, and when there are several: then nobody can say which one is meant.
func ControlPlane(ctx context.Context, c client.Reader, namespace string) (*hyperv1.HostedControlPlane, error) {
	list := &hyperv1.HostedControlPlaneList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("looking for the HostedControlPlane of namespace %s: %w", namespace, err)
	}
	if len(list.Items) != 1 {
		return nil, nil
	}
	return &list.Items[0], nil
}

// ControlPlanesBeside enqueues the HostedControlPlanes that share a namespace with the object of an event. An event whose namespace can't be listed is dropped;
// the next resync makes up for it.
func ControlPlanesBeside(c client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) (list []reconcile.Request) {
		hcps := &hyperv1.HostedControlPlaneList{}
		if err := c.List(ctx, hcps, client.InNamespace(obj.GetNamespace())); err != nil {
			return nil
		}
		for i := range hcps.Items {
			list = append(list, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&hcps.Items[i])})
		}
		return list
	})
}

// FinalizersChanged lets updates through that add or remove a finalizer: two operators look after a link, and each waits until the other has let go.
func FinalizersChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
	}}
}
