package endpoints

import (
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

// IgnitionEndpoint is the host, and the port unless it is 443, from which new machines get their configuration; empty while it is not
// known. svc is Service ignition-server, nil when it does not exist.
func IgnitionEndpoint(services []hyperv1.ServicePublishingStrategyMapping, svc *corev1.Service) string {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Spec.Services = services
	s, host := StrategyFor(hcp, hyperv1.Ignition), IgnitionHost(hcp)
	switch {
	case s == nil || host == "":
		return ""
	case s.Type == hyperv1.Route:
		return host
	case svc == nil || len(svc.Spec.Ports) == 0 || svc.Spec.Ports[0].NodePort == 0:
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(int(svc.Spec.Ports[0].NodePort)))
}
