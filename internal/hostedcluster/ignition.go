package hostedcluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/controlplane/openshift/ignitionserverproxy"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/hostedcluster/desired"
	"hcp.internal/platform/internal/kube/read"
)

// ignitionEndpoint is where machines reach the ignition server; empty while that is not known. Nothing here is cached: Services of all namespaces would be
// many, and these hardly change.
func (r *Reconciler) ignitionEndpoint(ctx context.Context, hc *hyperv1.HostedCluster, namespace string) (string, error) {
	strategy := endpoints.StrategyFor(desired.AsControlPlane(hc), hyperv1.Ignition)
	if strategy == nil {
		return "", nil
	}
	var live endpoints.Ignition
	var err error
	if strategy.Type == hyperv1.Route {
		live.RouteHost, err = r.ignitionRouteHost(ctx, hc, namespace)
		return endpoints.IgnitionEndpoint(hc.Spec.Services, live), err
	}
	if live.Service, err = read.Optional(ctx, r.Live, client.ObjectKey{Namespace: namespace, Name: names.IgnitionServer}, &corev1.Service{}); err != nil {
		return "", err
	}
	endpoint := endpoints.IgnitionEndpoint(hc.Spec.Services, live)
	if endpoint != "" {
		return endpoint, nil
	}
	if live.Proxy, err = read.Optional(ctx, r.Live, client.ObjectKey{Namespace: namespace, Name: ignitionserverproxy.Name}, &corev1.Service{}); err != nil {
		return "", err
	}
	return endpoints.IgnitionEndpoint(hc.Spec.Services, live), nil
}

// ignitionRouteHost is the name of Route ignition-server: the one in the hosted cluster's network, or what it was given by its router. Empty: the user's.
func (r *Reconciler) ignitionRouteHost(ctx context.Context, hc *hyperv1.HostedCluster, namespace string) (string, error) {
	hcp := desired.AsControlPlane(hc)
	if payload.Private(hcp) {
		return endpoints.InternalRouteHost(endpoints.IgnitionRouteName, hcp.Name), nil
	}
	if !r.Capabilities.Routes || endpoints.IgnitionHost(hcp) != "" {
		return "", nil
	}
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(endpoints.RouteKind)
	found, err := read.Optional(ctx, r.Live, client.ObjectKey{Namespace: namespace, Name: endpoints.IgnitionRouteName}, route)
	if err != nil || found == nil {
		return "", err
	}
	host, _, _ := unstructured.NestedString(found.Object, "spec", "host")
	return host, nil
}
