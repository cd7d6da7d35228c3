package kit

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/endpoints"
)

// RouteKind is the kind of Routes, which management clusters of OpenShift serve.
var RouteKind = endpoints.RouteKind

// RouterLabel has the control plane's own router serve a Route.
const RouterLabel = endpoints.RouterLabel

// HasRoutes says whether the management cluster serves Routes.
func HasRoutes(ctx component.WorkloadContext) (bool, error) {
	if ctx.Capabilities == nil {
		return false, nil
	}
	return ctx.Capabilities.Accessible(ctx.Context, RouteKind)
}

// Public says whether the API of the hosted cluster is reached from the internet.
func Public(hcp *hyperv1.HostedControlPlane) bool { return payload.Public(hcp) }

// OwnRouter says whether the control plane has a router of its own: for private ways to it, and for Routes with hostnames.
func OwnRouter(ctx component.WorkloadContext) bool {
	if ctx.HCP.Spec.Platform.Type == hyperv1.IBMCloudPlatform || (ARO(ctx) && !Private(ctx.HCP)) {
		return false // the shared ingress serves those of ARO
	}
	return Private(ctx.HCP) || RoutesAreOurs(ctx)
}

// RoutesAreOurs says whether external Routes are served by the control plane's router, or by the shared ingress, and not by the management cluster's.
func RoutesAreOurs(ctx component.WorkloadContext) bool {
	s := endpoints.StrategyFor(ctx.HCP, hyperv1.APIServer)
	named := s != nil && s.Type == hyperv1.Route && s.Route != nil && s.Route.Hostname != ""
	switch ctx.HCP.Spec.Platform.Type {
	case hyperv1.IBMCloudPlatform:
		return false
	case hyperv1.AWSPlatform, hyperv1.GCPPlatform:
		return named || !Public(ctx.HCP)
	case hyperv1.AzurePlatform:
		return named || !Public(ctx.HCP) || Swift(ctx.HCP) || ARO(ctx)
	}
	return named
}

// RoutingOf says who serves the Routes of the control plane. Its field Kind is left out; see HasRoutes.
func RoutingOf(ctx component.WorkloadContext) endpoints.Routing {
	return endpoints.Routing{
		Public: Public(ctx.HCP), Private: Private(ctx.HCP), Ours: RoutesAreOurs(ctx), OwnRouter: OwnRouter(ctx), SharedIngress: ARO(ctx),
		IngressDomain: ctx.Environment.DefaultIngressDomain,
	}
}

// PlannedRoutes are what the Routes of the control plane would be, for a router that has no Routes to go by.
func PlannedRoutes(ctx component.WorkloadContext) []endpoints.Route {
	metrics := ""
	if ForwardsMetrics(ctx.HCP) {
		metrics = MetricsProxyHost(ctx.HCP)
	}
	return endpoints.PlannedRoutes(ctx.HCP, RoutingOf(ctx), OAuthEnabled(ctx.HCP), IgnitionService(ctx.HCP), metrics)
}

// IgnitionService is what machines reach the ignition server by: the proxy in front of it, where there is one.
func IgnitionService(hcp *hyperv1.HostedControlPlane) string {
	if hcp.Spec.Platform.Type == hyperv1.IBMCloudPlatform {
		return "ignition-server"
	}
	return "ignition-server-proxy"
}

// InternalRoute gives a Route the name that is only known inside the virtual network of the hosted cluster.
func InternalRoute(ctx component.WorkloadContext, route *unstructured.Unstructured) error {
	setLabel(route, RouterLabel, ctx.HCP.Namespace)
	setLabel(route, endpoints.InternalRouteLabel, "true")
	return unstructured.SetNestedField(route.Object, endpoints.InternalRouteHost(route.GetName(), ctx.HCP.Name), "spec", "host")
}

// ExternalRoute gives a Route the name that the user chose; the router chooses one when he didn't.
func ExternalRoute(ctx component.WorkloadContext, route *unstructured.Unstructured, host string) error {
	if RoutesAreOurs(ctx) {
		setLabel(route, RouterLabel, ctx.HCP.Namespace)
	}
	host = endpoints.ExternalRouteHost(route.GetName(), ctx.HCP.Namespace, host, ctx.Environment.DefaultIngressDomain)
	if host == "" {
		return nil
	}
	return unstructured.SetNestedField(route.Object, host, "spec", "host")
}

func setLabel(route *unstructured.Unstructured, key, value string) {
	labels := route.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	route.SetLabels(labels)
}
