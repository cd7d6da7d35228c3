package endpoints

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
)

// Services that only the components of OpenShift payloads have.
const (
	OpenShiftAPIServiceName  = "openshift-apiserver"
	OAuthAPIServiceName      = "openshift-oauth-apiserver"
	PackageServerServiceName = "packageserver"
	OAuthServiceName         = "oauth-openshift"

	// OAuthPort is where the OAuth server is reached behind its Service, and by a load balancer.
	OAuthPort int32 = 6443
)

// aggregated are the servers that hosted API servers pass requests on to, by the port of their pods. The hosted cluster's Endpoints of the same name point
// to their ClusterIPs.
var aggregated = []struct {
	name   string
	target int32
}{{OpenShiftAPIServiceName, 8443}, {OAuthAPIServiceName, 8443}, {PackageServerServiceName, 5443}}

// Payload is what the management cluster holds of the Services that only OpenShift payloads have.
type Payload struct {
	// OAuth says whether the control plane runs an OAuth server.
	OAuth bool
	// Aggregated are the ClusterIPs of the API servers behind kube-apiserver, by the names of their Services; "" or absent: not assigned yet.
	Aggregated map[string]string
	// OAuthService is Service oauth-openshift, nil when it does not exist, and OAuthWarnings are recent events about it.
	OAuthService  *corev1.Service
	OAuthWarnings []string

	// Routing says who serves Routes.
	Routing Routing
	// Router, PrivateRouter and APIPrivate are the Services of these purposes, nil when they don't exist. RouterWarnings are recent events about those of
	// the router.
	Router, PrivateRouter, APIPrivate *corev1.Service
	RouterWarnings                    []string
	// Routes are those of the control plane, by name, as far as the management cluster serves them.
	Routes map[string]LiveRoute
}

// ValidatePayload is Validate for what only OpenShift payloads publish. oauth says whether the control plane runs an OAuth server.
func ValidatePayload(hcp *hyperv1.HostedControlPlane, routing Routing, oauth bool) error {
	if err := validateIgnition(hcp); err != nil {
		return err
	}
	if err := validateRoutes(hcp, routing, oauth); err != nil || !oauth {
		return err
	}
	strategy := StrategyFor(hcp, hyperv1.OAuthServer)
	if strategy == nil {
		return fmt.Errorf("spec.services does not say how %s is published; use NodePort", hyperv1.OAuthServer)
	}
	switch strategy.Type {
	case hyperv1.NodePort:
		if strategy.NodePort == nil || strategy.NodePort.Address == "" {
			return fmt.Errorf("service %s is published by NodePort without an address; set servicePublishingStrategy.nodePort.address to an address of a node", hyperv1.OAuthServer)
		}
	case hyperv1.LoadBalancer:
		if hcp.Spec.Platform.Type != hyperv1.AzurePlatform {
			return fmt.Errorf("service %s is published by LoadBalancer, which only platform %s has; use NodePort", hyperv1.OAuthServer, hyperv1.AzurePlatform)
		}
	case hyperv1.None, hyperv1.Route:
	default:
		return fmt.Errorf("service %s cannot be published by %q; use NodePort", hyperv1.OAuthServer, strategy.Type)
	}
	return nil
}

// validateRoutes: without the kind, the own router has to serve Routes, and nobody chooses names.
func validateRoutes(hcp *hyperv1.HostedControlPlane, r Routing, oauth bool) error {
	if r.Kind {
		return nil
	}
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		if !byRoute(hcp, service) || service == hyperv1.OAuthServer && !oauth {
			continue
		}
		const kind = "the management cluster does not serve route.openshift.io"
		switch {
		case !r.OwnRouter || r.Public && !r.Ours:
			return fmt.Errorf("service %s is published by Route, but %s, and the control plane has a router of its own only with a named %s; "+
				"publish %[3]s by Route with servicePublishingStrategy.route.hostname, or %[1]s by NodePort", service, kind, hyperv1.APIServer)
		case r.Public && routeHostname(hcp, service) == "":
			return fmt.Errorf("service %s is published by Route without a name, and %s, whose router would choose one; set servicePublishingStrategy.route.hostname", service, kind)
		}
	}
	return nil
}

// validateIgnition: what serves machines of OpenShift is always published.
func validateIgnition(hcp *hyperv1.HostedControlPlane) error {
	if _, disabled := hcp.Annotations[hyperv1.DisableIgnitionServerAnnotation]; disabled || hcp.Spec.Platform.Type == hyperv1.IBMCloudPlatform {
		return nil
	}
	strategy := StrategyFor(hcp, hyperv1.Ignition)
	switch {
	case strategy == nil:
		return fmt.Errorf("spec.services does not say how %s is published; use NodePort, or Route on a management cluster of OpenShift", hyperv1.Ignition)
	case strategy.Type == hyperv1.Route:
	case strategy.Type != hyperv1.NodePort:
		return fmt.Errorf("service %s cannot be published by %q; use NodePort, or Route on a management cluster of OpenShift", hyperv1.Ignition, strategy.Type)
	case strategy.NodePort == nil || strategy.NodePort.Address == "":
		return fmt.Errorf("service %s is published by NodePort without an address; set servicePublishingStrategy.nodePort.address to an address of a node", hyperv1.Ignition)
	}
	return nil
}

// PayloadServices are the Services that the components of an OpenShift payload need besides Services.
func PayloadServices(hcp *hyperv1.HostedControlPlane, oauth bool) []*corev1.Service {
	var services []*corev1.Service
	for _, a := range aggregated {
		if a.name == OAuthAPIServiceName && !oauth {
			continue
		}
		services = append(services, payloadService(hcp, a.name, corev1.ServicePort{Name: "https", Protocol: corev1.ProtocolTCP, Port: RoutePort, TargetPort: intstr.FromInt32(a.target)}))
	}
	if oauth {
		services = append(services, oauthService(hcp))
	}
	return services
}

func oauthService(hcp *hyperv1.HostedControlPlane) *corev1.Service {
	svc := payloadService(hcp, OAuthServiceName, corev1.ServicePort{Protocol: corev1.ProtocolTCP, Port: OAuthPort, TargetPort: intstr.FromInt32(OAuthPort)})
	strategy := StrategyFor(hcp, hyperv1.OAuthServer)
	if strategy == nil {
		return svc
	}
	switch strategy.Type {
	case hyperv1.NodePort:
		svc.Spec.Type = corev1.ServiceTypeNodePort
		if strategy.NodePort != nil {
			svc.Spec.Ports[0].NodePort = strategy.NodePort.Port
		}
	case hyperv1.LoadBalancer:
		svc.Spec.Type, svc.Spec.Ports[0].Port = corev1.ServiceTypeLoadBalancer, RoutePort
		svc.Annotations = map[string]string{}
		if hcp.Spec.Platform.Type == hyperv1.AzurePlatform && payload.Private(hcp) && !payload.Public(hcp) && !payload.Swift(hcp) {
			svc.Annotations = privateLoadBalancer(hcp)
		}
		if lb := strategy.LoadBalancer; lb != nil && lb.Hostname != "" {
			svc.Annotations[externalDNSAnnotation] = string(lb.Hostname)
		}
		if len(svc.Annotations) == 0 {
			svc.Annotations = nil
		}
	}
	return svc
}

func payloadService(hcp *hyperv1.HostedControlPlane, name string, port corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: name, Labels: map[string]string{appLabel: name}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
			Selector: map[string]string{appLabel: name}, Ports: []corev1.ServicePort{port},
		},
	}
}

// fillPayload is about what only OpenShift payloads publish.
func (s *Status) fillPayload(hcp *hyperv1.HostedControlPlane, p *Payload) {
	if p == nil {
		return
	}
	s.fillRouters(hcp, p)
	s.OpenShiftAPIHost, s.PackageServerAPIAddress = p.Aggregated[OpenShiftAPIServiceName], p.Aggregated[PackageServerServiceName]
	for _, a := range aggregated {
		if p.Aggregated[a.name] == "" && (a.name != OAuthAPIServiceName || p.OAuth) {
			s.Missing = append(s.Missing, fmt.Sprintf("service %s/%s has no cluster IP yet", hcp.Namespace, a.name))
		}
	}
	if !p.OAuth {
		return
	}
	s.OAuthAPIServerHost = p.Aggregated[OAuthAPIServiceName]
	if err := s.fillOAuth(hcp, p); err != nil {
		s.Missing = append(s.Missing, err.Error())
	}
}

// fillRouters is about the own router, which is waited for where it is to be: its address goes into what Routes are admitted with.
func (s *Status) fillRouters(hcp *hyperv1.HostedControlPlane, p *Payload) {
	s.ExternalRouterHost, s.InternalRouterHost = routerHost(p.Router), routerHost(p.PrivateRouter)
	if p.Routing.SharedIngress && p.PrivateRouter != nil {
		s.InternalRouterHost = p.PrivateRouter.Spec.ClusterIP
	}
	missing := func(service string) {
		s.Missing = append(s.Missing, fmt.Sprintf("load balancer of service %s/%s has no address yet%s", hcp.Namespace, service, because(p.RouterWarnings)))
	}
	if p.Routing.publicRouter() && s.ExternalRouterHost == "" {
		missing(RouterServiceName)
	}
	if p.Routing.privateRouter() && s.InternalRouterHost == "" {
		missing(PrivateRouterServiceName)
	}
	s.IgnitionHost, s.MetricsHost = p.Routes[IgnitionRouteName].Host, p.Routes[MetricsProxyRouteName].Host
	if byRoute(hcp, hyperv1.Ignition) && s.IgnitionHost == "" {
		s.IgnitionHost = single(hcp, p.Routing, hyperv1.Ignition, IgnitionRouteName, "").Host
	}
}

// routerHost is where the load balancer of a router is reached, empty while that is not known.
func routerHost(svc *corev1.Service) string {
	if svc == nil {
		return ""
	}
	return loadBalancerHost(&hyperv1.ServicePublishingStrategy{}, svc)
}

// routeHost is the name of a Route that this package plans: what was asked for, or what the router of the management cluster chose.
func routeHost(hcp *hyperv1.HostedControlPlane, p *Payload, name string) (string, error) {
	if p == nil {
		return "", fmt.Errorf("route %s/%s waits until it is known what the release is", hcp.Namespace, name)
	}
	for _, r := range routes(hcp, p.Routing, p.OAuth) {
		if r.Name == name && r.Host != "" {
			return r.Host, nil
		}
	}
	if host := p.Routes[name].Host; host != "" {
		return host, nil
	}
	return "", fmt.Errorf("route %s/%s has no host yet", hcp.Namespace, name)
}

// oauthRoute is the Route by which users reach the OAuth server.
func oauthRoute(hcp *hyperv1.HostedControlPlane, r Routing) string {
	switch {
	case r.Public:
		return OAuthRouteName
	case routeHostname(hcp, hyperv1.OAuthServer) != "":
		return OAuthPrivateRouteName
	}
	return OAuthInternalName
}

func (s *Status) fillOAuth(hcp *hyperv1.HostedControlPlane, p *Payload) error {
	strategy, svc := StrategyFor(hcp, hyperv1.OAuthServer), p.OAuthService
	if strategy == nil {
		return fmt.Errorf("spec.services does not say how %s is published", hyperv1.OAuthServer)
	}
	if svc == nil || len(svc.Spec.Ports) == 0 {
		return fmt.Errorf("service %s/%s does not exist yet", hcp.Namespace, OAuthServiceName)
	}
	switch strategy.Type {
	case hyperv1.NodePort:
		if strategy.NodePort == nil {
			return fmt.Errorf("spec.services gives no address for %s", hyperv1.OAuthServer)
		}
		if svc.Spec.Ports[0].NodePort == 0 {
			return fmt.Errorf("service %s/%s has no node port yet%s", svc.Namespace, svc.Name, because(p.OAuthWarnings))
		}
		s.OAuthHost, s.OAuthPort = strategy.NodePort.Address, svc.Spec.Ports[0].NodePort
	case hyperv1.LoadBalancer:
		host := loadBalancerHost(strategy, svc)
		if host == "" {
			return fmt.Errorf("load balancer of service %s/%s has no address yet%s", svc.Namespace, svc.Name, because(p.OAuthWarnings))
		}
		s.OAuthHost, s.OAuthPort = host, RoutePort
	case hyperv1.Route:
		host, err := routeHost(hcp, p, oauthRoute(hcp, p.Routing))
		if err != nil {
			return err
		}
		s.OAuthHost, s.OAuthPort = host, RoutePort
	case hyperv1.None:
		if svc.Spec.ClusterIP == "" || svc.Spec.ClusterIP == corev1.ClusterIPNone {
			return fmt.Errorf("service %s/%s has no cluster IP yet", svc.Namespace, svc.Name)
		}
		s.OAuthHost, s.OAuthPort = svc.Spec.ClusterIP, OAuthPort
	default:
		return fmt.Errorf("%s cannot be published by %q", hyperv1.OAuthServer, strategy.Type)
	}
	return nil
}
