package hostedcontrolplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/kube/apply"
)

// routeNamed is a Route that has nothing but its name.
func routeNamed(namespace, name string) *unstructured.Unstructured {
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(endpoints.RouteKind)
	route.SetNamespace(namespace)
	route.SetName(name)
	return route
}

// observeRoutes looks which Routes there are, so that none is asked for one by one that isn't there.
func (r *Reconciler) observeRoutes(ctx context.Context, obs *Observed) (err error) {
	if obs.Flavour != openShift || !obs.Routing.Kind || obs.RoutesFound != nil {
		return nil
	}
	obs.RoutesFound, err = endpoints.ObserveRoutes(ctx, r.Client, obs.HCP.Namespace)
	return err
}

// admitRoutes writes the status of the Routes that the control plane's own router serves. Nobody else does, and external-dns goes by it.
func (r *Reconciler) admitRoutes(ctx context.Context, obs *Observed) error {
	if obs.Flavour != openShift || !obs.Routing.Kind || !obs.Routing.OwnRouter {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(endpoints.RouteKind.GroupVersion().WithKind(endpoints.RouteKind.Kind + "List"))
	if err := r.Client.List(ctx, list, client.InNamespace(obs.HCP.Namespace), client.MatchingLabels{endpoints.RouterLabel: obs.HCP.Namespace}); err != nil {
		return fmt.Errorf("listing the Routes of the control plane's router: %w", err)
	}
	var errs []error
	for i := range list.Items {
		errs = append(errs, r.admit(ctx, obs, &list.Items[i]))
	}
	return errors.Join(errs...)
}

// admit writes the status of one Route, and marks whose it is. Another who changed it meanwhile makes a conflict, and another pass.
func (r *Reconciler) admit(ctx context.Context, obs *Observed, route *unstructured.Unstructured) error {
	if route.GetAnnotations()[endpoints.RouteStatusWriterAnnotation] != endpoints.RouteStatusWriter {
		mark, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{endpoints.RouteStatusWriterAnnotation: endpoints.RouteStatusWriter}}})
		if err != nil {
			return err
		}
		apply.Count("Route", "patch", names.ControlPlaneOperator)
		if err := r.Client.Patch(ctx, route, client.RawPatch(types.MergePatchType, mark)); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("marking Route %s: %w", route.GetName(), err)
		}
	}
	status, changed := endpoints.Admission(route, obs.Infra.ExternalRouterHost, obs.Infra.InternalRouterHost, metav1.NewTime(r.Clock.Now()))
	if !changed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": route.GetResourceVersion()}, "status": status})
	if err != nil {
		return err
	}
	apply.Count("Route", "patch", names.ControlPlaneOperator)
	if err := r.Client.Status().Patch(ctx, route, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("admitting Route %s: %w", route.GetName(), err)
	}
	return nil
}

// dialFor is where the API is dialled in place of the host of the administrator's kubeconfig, empty for that host: names of Routes may not be known to
// this process, or not yet, and a private name never is.
func dialFor(obs *Observed) string {
	if obs.Flavour != openShift {
		return ""
	}
	strategy := endpoints.StrategyFor(obs.HCP, hyperv1.APIServer)
	switch {
	case !payload.Public(obs.HCP):
		return net.JoinHostPort(names.KubeAPIServer+"."+obs.HCP.Namespace+".svc", strconv.Itoa(int(endpoints.ServiceAPIPort(obs.HCP))))
	case strategy != nil && strategy.Type == hyperv1.Route && obs.Routing.OwnRouter && obs.Infra.ExternalRouterHost != "":
		return net.JoinHostPort(obs.Infra.ExternalRouterHost, strconv.Itoa(int(endpoints.RoutePort)))
	}
	return ""
}
