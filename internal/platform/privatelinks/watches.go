package privatelinks

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/changes"
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

// Requests are for the links of these names in a control plane's namespace, whether they are there or not.
func Requests(namespace string, links []string) (list []reconcile.Request) {
	for _, name := range links {
		list = append(list, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return list
}

// LinksBeside enqueues the links that share a namespace with the object of an event.
func LinksBeside(links []string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return Requests(obj.GetNamespace(), links)
	})
}

// LinksOf enqueues the links of a HostedCluster of this platform.
func LinksOf(platform hyperv1.PlatformType, links []string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		hc, ok := obj.(*hyperv1.HostedCluster)
		if !ok || hc.Spec.Platform.Type != platform {
			return nil
		}
		return Requests(names.NamespaceOf(hc), links)
	})
}

// FinalizersChanged lets updates through that add or remove a finalizer: two operators look after a link, and each waits until the other has let go.
func FinalizersChanged() predicate.Predicate {
	return changes.Of(func(obj client.Object) any { return obj.GetFinalizers() })
}
