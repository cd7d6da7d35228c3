package endpoints

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// The advertised address when the published one cannot serve as such. A node owns it and forwards connections to the published endpoint.
const (
	defaultAdvertiseAddress     = "172.20.0.1"
	defaultAdvertiseAddressIPv6 = "fd00::1"
)

// Live is what the management cluster holds.
type Live struct {
	// API is Service kube-apiserver, nil when it does not exist.
	API *corev1.Service
	// APIBalancer is Service kube-apiserverlb, nil when it does not exist.
	APIBalancer *corev1.Service
	// Warnings are recent warning events about the Service that publishes the API, newest first.
	Warnings []string
	// Konnectivity is Service konnectivity-server, nil when it does not exist, and KonnectivityWarnings the events about it.
	Konnectivity         *corev1.Service
	KonnectivityWarnings []string
	// Payload is what only OpenShift payloads have; nil for releases of Kubernetes.
	Payload *Payload
}

// StatusOf computes the endpoints from the HostedControlPlane and the live Services.
func StatusOf(hcp *hyperv1.HostedControlPlane, live Live) Status {
	var s Status
	if err := s.fillAPI(hcp, live); err != nil {
		s.Missing = append(s.Missing, err.Error())
		return s
	}
	s.AdvertiseAddress, s.AdvertisePort, s.NodeProxy = Advertised(&hcp.Spec.Networking, s.APIHost, s.APIPort)
	if err := s.fillKonnectivity(hcp, live); err != nil {
		s.Missing = append(s.Missing, err.Error())
	}
	s.fillPayload(hcp, live.Payload)
	return s
}

func (s *Status) fillAPI(hcp *hyperv1.HostedControlPlane, live Live) error {
	strategy := StrategyFor(hcp, hyperv1.APIServer)
	if strategy == nil {
		return fmt.Errorf("spec.services does not say how %s is published", hyperv1.APIServer)
	}
	svc := live.API
	if svc == nil {
		return fmt.Errorf("service %s/%s does not exist yet", hcp.Namespace, names.KubeAPIServer)
	}
	if svc.Spec.ClusterIP != corev1.ClusterIPNone {
		s.APIServiceIP = svc.Spec.ClusterIP
	}
	switch strategy.Type {
	case hyperv1.LoadBalancer:
		return s.fillLoadBalancer(hcp, strategy, live)
	case hyperv1.Route:
		return s.fillAPIRoute(hcp, live.Payload)
	case hyperv1.NodePort:
		if strategy.NodePort == nil {
			return fmt.Errorf("spec.services gives no address for %s", hyperv1.APIServer)
		}
		if len(svc.Spec.Ports) == 0 || svc.Spec.Ports[0].NodePort == 0 {
			return fmt.Errorf("service %s/%s has no node port yet%s", svc.Namespace, svc.Name, because(live.Warnings))
		}
		s.APIHost, s.APIPort = strategy.NodePort.Address, svc.Spec.Ports[0].NodePort
	case hyperv1.None:
		if s.APIServiceIP == "" {
			return fmt.Errorf("service %s/%s has no cluster IP yet", svc.Namespace, svc.Name)
		}
		s.APIHost, s.APIPort = s.APIServiceIP, ServiceAPIPort(hcp)
	default:
		return fmt.Errorf("%s cannot be published by %q", hyperv1.APIServer, strategy.Type)
	}
	return nil
}

// fillLoadBalancer prefers the name that the user gave: it is stable, and known before the load balancer is.
func (s *Status) fillLoadBalancer(hcp *hyperv1.HostedControlPlane, strategy *hyperv1.ServicePublishingStrategy, live Live) error {
	svc := live.API
	switch apiBalancer(hcp) {
	case APIPrivateServiceName:
		svc = nil
		if live.Payload != nil {
			svc = live.Payload.APIPrivate
		}
	case APIBalancerServiceName:
		svc = live.APIBalancer
	}
	if svc == nil {
		return fmt.Errorf("service %s/%s does not exist yet", hcp.Namespace, apiBalancer(hcp))
	}
	s.APIPort = BalancedAPIPort(hcp)
	if s.APIHost = loadBalancerHost(strategy, svc); s.APIHost != "" {
		return nil
	}
	s.APIPort = 0
	return fmt.Errorf("load balancer of service %s/%s has no address yet%s", svc.Namespace, svc.Name, because(live.Warnings))
}

// fillAPIRoute prefers the name that the user gave. Without one, which only private clusters may be, it is the router.
func (s *Status) fillAPIRoute(hcp *hyperv1.HostedControlPlane, p *Payload) error {
	if p == nil {
		return fmt.Errorf("%s is published by Route, which waits until it is known what the release is", hyperv1.APIServer)
	}
	host := routeHostname(hcp, hyperv1.APIServer)
	if host == "" {
		host = routerHost(p.PrivateRouter)
	}
	if host == "" {
		return fmt.Errorf("load balancer of service %s/%s has no address yet%s", hcp.Namespace, PrivateRouterServiceName, because(p.RouterWarnings))
	}
	s.APIHost, s.APIPort = host, RoutePort
	return nil
}

// loadBalancerHost is the name that the user gave, or else what the load balancer of a Service got; empty while it has neither.
func loadBalancerHost(strategy *hyperv1.ServicePublishingStrategy, svc *corev1.Service) string {
	if lb := strategy.LoadBalancer; lb != nil && lb.Hostname != "" {
		return string(lb.Hostname)
	}
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		if host := cmp.Or(ingress.Hostname, ingress.IP); host != "" {
			return host
		}
	}
	return ""
}

func because(warnings []string) string {
	if len(warnings) == 0 {
		return ""
	}
	return ": " + strings.Join(warnings, "; ")
}

// Advertised is what kube-apiserver advertises and Service default/kubernetes of the hosted cluster points to, given the published endpoint: the
// address that the user asked for, else the published one when it is an IP that endpoints may have, else a fixed one. Every node must
// own and forward an address that isn't the published one (nodeProxy).
func Advertised(networking *hyperv1.ClusterNetworking, host string, port int32) (address string, advertisedPort int32, nodeProxy bool) {
	advertisedPort = InternalAPIPort
	if api := networking.APIServer; api != nil {
		if p := ptr.Deref(api.Port, 0); p != 0 {
			advertisedPort = p
		}
		if a := ptr.Deref(api.AdvertiseAddress, ""); a == host && port != 0 {
			return a, port, false // a node that owned it could not reach the API any more
		} else if a != "" {
			return a, advertisedPort, true
		}
	}
	ipv6 := serviceIPv6(networking)
	if addr, err := netip.ParseAddr(host); err == nil && port != 0 && addr.Is6() == ipv6 && usable(addr) {
		return addr.String(), port, false
	}
	if ipv6 {
		return defaultAdvertiseAddressIPv6, advertisedPort, true
	}
	return defaultAdvertiseAddress, advertisedPort, true
}

// usable reports whether the API server accepts the address in Endpoints.
func usable(addr netip.Addr) bool {
	return !addr.IsUnspecified() && !addr.IsLoopback() && !addr.IsLinkLocalUnicast() && !addr.IsMulticast() && addr.Zone() == ""
}

// serviceIPv6 reports whether Service default/kubernetes has an IPv6 address, which its endpoints must match.
func serviceIPv6(networking *hyperv1.ClusterNetworking) bool {
	if len(networking.ServiceNetwork) == 0 {
		return false
	}
	prefix, err := netip.ParsePrefix(string(networking.ServiceNetwork[0].CIDR))
	return err == nil && prefix.Addr().Is6()
}

// Complete fills in what follows from the published addresses: the advertised one. It is for previews, where no Service tells.
func Complete(hcp *hyperv1.HostedControlPlane, s Status) Status {
	address, port, proxy := Advertised(&hcp.Spec.Networking, s.APIHost, s.APIPort)
	if s.AdvertiseAddress == "" {
		s.AdvertiseAddress, s.NodeProxy = address, proxy
	}
	s.AdvertisePort = cmp.Or(s.AdvertisePort, port)
	return s
}
