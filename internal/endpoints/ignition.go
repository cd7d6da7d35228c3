package endpoints

import (
	"cmp"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// IgnitionHost is the name or address at which machines reach the ignition server, as far as the spec says it. Empty when it does not.
func IgnitionHost(hcp *hyperv1.HostedControlPlane) string {
	s := StrategyFor(hcp, hyperv1.Ignition)
	switch {
	case s == nil:
	case s.Type == hyperv1.NodePort && s.NodePort != nil:
		return s.NodePort.Address
	case s.Type == hyperv1.Route && s.Route != nil:
		return string(s.Route.Hostname)
	}
	return ""
}

// Ignition is what the management cluster holds of what publishes the ignition server.
type Ignition struct {
	// Service is ignition-server, Proxy the one of the proxy in front of it, which OpenShift payloads have. nil when they don't exist.
	Service, Proxy *corev1.Service
	// RouteHost is the name that Route ignition-server has; empty when it has none.
	RouteHost string
}

// IgnitionEndpoint is the host, and the port unless it is 443, from which new machines get their configuration; empty while it is not
// known.
func IgnitionEndpoint(services []hyperv1.ServicePublishingStrategyMapping, live Ignition) string {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Spec.Services = services
	s := StrategyFor(hcp, hyperv1.Ignition)
	switch {
	case s == nil:
		return ""
	case s.Type == hyperv1.Route:
		return cmp.Or(live.RouteHost, IgnitionHost(hcp))
	}
	host := IgnitionHost(hcp)
	if host == "" {
		return ""
	}
	for _, svc := range []*corev1.Service{live.Service, live.Proxy} {
		if svc != nil && len(svc.Spec.Ports) > 0 && svc.Spec.Ports[0].NodePort != 0 {
			return net.JoinHostPort(host, strconv.Itoa(int(svc.Spec.Ports[0].NodePort)))
		}
	}
	return ""
}
