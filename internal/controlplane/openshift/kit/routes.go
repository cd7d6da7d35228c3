package kit

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/endpoints"
)

// RouteKind is the kind of Routes, which management clusters of OpenShift serve.
var RouteKind = schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}

// Labels of Routes.
const (
	// RouterLabel has the control plane's own router serve a Route, and keeps the router of the management cluster away from it. Its value is the
	// namespace of the control plane.
	RouterLabel        = "hypershift.openshift.io/hosted-control-plane"
	internalRouteLabel = "hypershift.openshift.io/internal-route"
)

// HasRoutes says whether the management cluster serves Routes.
func HasRoutes(ctx component.WorkloadContext) (bool, error) {
	if ctx.Capabilities == nil {
		return false, nil
	}
	return ctx.Capabilities.Accessible(ctx.Context, RouteKind)
}

// Public says whether the API of the hosted cluster is reached from the internet.
func Public(hcp *hyperv1.HostedControlPlane) bool {
	switch p := hcp.Spec.Platform; {
	case p.AWS != nil && p.Type == hyperv1.AWSPlatform:
		return p.AWS.EndpointAccess != hyperv1.Private
	case p.GCP != nil && p.Type == hyperv1.GCPPlatform:
		return p.GCP.EndpointAccess != hyperv1.GCPEndpointAccessPrivate
	case p.Azure != nil && p.Type == hyperv1.AzurePlatform:
		return p.Azure.Topology != hyperv1.AzureTopologyPrivate
	}
	return true
}

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

// InternalRoute gives a Route the name that is only known inside the virtual network of the hosted cluster.
func InternalRoute(ctx component.WorkloadContext, route *unstructured.Unstructured) error {
	setLabel(route, RouterLabel, ctx.HCP.Namespace)
	setLabel(route, internalRouteLabel, "true")
	return unstructured.SetNestedField(route.Object, internalHost(route.GetName(), ctx.HCP), "spec", "host")
}

// internalHost is the name of a Route inside the virtual network.
func internalHost(route string, hcp *hyperv1.HostedControlPlane) string {
	return strings.TrimSuffix(route, "-internal") + ".apps." + hcp.Name + ".hypershift.local"
}

// ExternalRoute gives a Route the name that the user chose; the router chooses one when he didn't.
func ExternalRoute(ctx component.WorkloadContext, route *unstructured.Unstructured, host string) error {
	if RoutesAreOurs(ctx) {
		setLabel(route, RouterLabel, ctx.HCP.Namespace)
	}
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
