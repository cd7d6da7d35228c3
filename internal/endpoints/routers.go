package endpoints

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
)

// Services by which the control plane's own router is reached, and the API of a private cluster that is published by a load balancer.
const (
	RouterServiceName        = "router"
	PrivateRouterServiceName = "private-router"
	APIPrivateServiceName    = "kube-apiserver-private"

	// routerApp is the label of the router's pods, whoever reaches them.
	routerApp = "private-router"
)

// Annotations by which the load balancers of clouds are told what they are to be.
const (
	awsLoadBalancer      = "service.beta.kubernetes.io/aws-load-balancer-"
	awsTargetNodes       = awsLoadBalancer + "target-node-labels"
	azureInternal        = "service.beta.kubernetes.io/azure-load-balancer-internal"
	googleLoadBalancer   = "networking.gke.io/load-balancer-type"
	maxExternalDNSLength = 4096
)

// routerServices are the Services of the own router and of the API of private clusters, nil for those that are not to exist.
func routerServices(hcp *hyperv1.HostedControlPlane, r Routing, oauth bool) map[string]*corev1.Service {
	out := map[string]*corev1.Service{RouterServiceName: nil, PrivateRouterServiceName: nil, APIPrivateServiceName: nil}
	if r.publicRouter() {
		svc := routerService(hcp, RouterServiceName)
		svc.Spec.LoadBalancerSourceRanges = allowedRanges(hcp)
		svc.Annotations = publicLoadBalancer(hcp, r)
		if hcp.Spec.Platform.Type == hyperv1.AWSPlatform {
			svc.Annotations[awsLoadBalancer+"scheme"] = "internet-facing"
		}
		if hosts := publicHosts(hcp, r, oauth); !r.Kind && hosts != "" {
			svc.Annotations[externalDNSAnnotation] = hosts // where there are Routes, external-dns goes by these
		}
		if len(svc.Annotations) == 0 {
			svc.Annotations = nil
		}
		out[svc.Name] = svc
	}
	if r.privateRouter() {
		svc := routerService(hcp, PrivateRouterServiceName)
		if r.SharedIngress {
			svc.Spec.Type = corev1.ServiceTypeClusterIP // pods have an interface in the virtual network themselves
		} else {
			svc.Annotations = privateLoadBalancer(hcp)
			maps.Copy(svc.Annotations, targetNodes(hcp))
		}
		out[svc.Name] = svc
	}
	if s := StrategyFor(hcp, hyperv1.APIServer); r.Private && s != nil && s.Type == hyperv1.LoadBalancer {
		svc := apiService(hcp)
		svc.Name, svc.Annotations = APIPrivateServiceName, privateLoadBalancer(hcp)
		svc.Spec.Type, svc.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, nil
		svc.Spec.Ports = []corev1.ServicePort{apiServicePort(BalancedAPIPort(hcp))}
		out[svc.Name] = svc
	}
	return out
}

func routerService(hcp *hyperv1.HostedControlPlane, name string) *corev1.Service {
	svc := payloadService(hcp, name, corev1.ServicePort{Name: "https", Protocol: corev1.ProtocolTCP, Port: RoutePort, TargetPort: intstr.FromString("https")})
	svc.Spec.Type, svc.Spec.Selector = corev1.ServiceTypeLoadBalancer, map[string]string{appLabel: routerApp}
	return svc
}

// publicLoadBalancer are the annotations of a load balancer of the own router that is reached from the internet; never nil.
func publicLoadBalancer(hcp *hyperv1.HostedControlPlane, r Routing) map[string]string {
	annotations := targetNodes(hcp)
	if hcp.Spec.Platform.Type == hyperv1.AWSPlatform {
		annotations[awsLoadBalancer+"type"] = "nlb"
		if r.Private {
			crossZone(annotations)
		}
	}
	return annotations
}

// privateLoadBalancer are those of one that is reached from the management cluster's network only; never nil.
func privateLoadBalancer(hcp *hyperv1.HostedControlPlane) map[string]string {
	annotations := map[string]string{}
	switch hcp.Spec.Platform.Type {
	case hyperv1.AWSPlatform:
		annotations[awsLoadBalancer+"type"], annotations[awsLoadBalancer+"internal"] = "nlb", "true"
		crossZone(annotations)
	case hyperv1.AzurePlatform:
		annotations[azureInternal] = "true"
	case hyperv1.GCPPlatform:
		annotations[googleLoadBalancer] = "Internal"
	}
	return annotations
}

// InternalLoadBalancer tells whether a Service asks Azure or Google for a load balancer that is reached from the management cluster's network only.
func InternalLoadBalancer(svc *corev1.Service) bool {
	return svc.Annotations[azureInternal] == "true" || svc.Annotations[googleLoadBalancer] == "Internal"
}

func crossZone(annotations map[string]string) {
	annotations[awsLoadBalancer+"cross-zone-load-balancing-enabled"] = "true"
	annotations[awsLoadBalancer+"attributes"] = "load_balancing.cross_zone.enabled=true"
}

// targetNodes say which nodes of the management cluster are behind the routers' load balancers; never nil.
func targetNodes(hcp *hyperv1.HostedControlPlane) map[string]string {
	if labels := hcp.Annotations[hyperv1.AWSLoadBalancerTargetNodesAnnotation]; labels != "" && hcp.Spec.Platform.Type == hyperv1.AWSPlatform {
		return map[string]string{awsTargetNodes: labels}
	}
	return map[string]string{}
}

// publicHosts are the names that lead to the own router, for external-dns. What would make the list too long is left out.
func publicHosts(hcp *hyperv1.HostedControlPlane, r Routing, oauth bool) string {
	seen := map[string]bool{}
	for _, route := range PlannedRoutes(hcp, r, oauth, "", "") {
		if route.Ours && !route.Internal && !route.Hidden && route.Host != "" {
			seen[route.Host] = true
		}
	}
	list := strings.Join(slices.Sorted(maps.Keys(seen)), ",")
	if len(list) > maxExternalDNSLength {
		return ""
	}
	return list
}

// ServicePlan is what becomes of Services.
type ServicePlan struct {
	Apply []*corev1.Service
	// Delete are the names of those that must not exist.
	Delete []string
}

// RouterServices are the Services of the own router, and that of a private API.
func RouterServices(hcp *hyperv1.HostedControlPlane, r Routing, oauth bool) ServicePlan {
	var plan ServicePlan
	all := routerServices(hcp, r, oauth)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if svc := all[name]; svc != nil {
			plan.Apply = append(plan.Apply, svc)
		} else {
			plan.Delete = append(plan.Delete, name)
		}
	}
	return plan
}

// privateAPI says whether the API is published by a load balancer that is private only.
func privateAPI(hcp *hyperv1.HostedControlPlane) bool {
	s := StrategyFor(hcp, hyperv1.APIServer)
	return payload.Private(hcp) && !payload.Public(hcp) && s != nil && s.Type == hyperv1.LoadBalancer
}
