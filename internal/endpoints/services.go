package endpoints

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/payload"
)

const (
	// KonnectivityServiceName is the Service by which agents reach the tunnel server, KonnectivityLocalServiceName that of
	// kube-apiserver and its neighbours. The server runs in kube-apiserver's pods.
	KonnectivityServiceName      = "konnectivity-server"
	KonnectivityLocalServiceName = "konnectivity-server-local"

	// apiContainerPort is the name of the port in kube-apiserver's pods.
	apiContainerPort = "client"

	appLabel = "app"

	// externalDNSAnnotation tells external-dns to make a record for the Service.
	externalDNSAnnotation = "external-dns.alpha.kubernetes.io/hostname"
)

// StrategyFor is how a service is to be published; nil when the HostedControlPlane does not say.
func StrategyFor(hcp *hyperv1.HostedControlPlane, service hyperv1.ServiceType) *hyperv1.ServicePublishingStrategy {
	for i := range hcp.Spec.Services {
		if hcp.Spec.Services[i].Service == service {
			return &hcp.Spec.Services[i].ServicePublishingStrategy
		}
	}
	return nil
}

// Capabilities of the management cluster as far as publishing is concerned.
type Capabilities struct {
	// Routes is true when the management cluster serves route.openshift.io.
	Routes bool
}

// Validate says why the services cannot be published on this management cluster, whatever the release. The error is for a person who can edit the
// HostedCluster. More is known with the release: see ValidateKubernetes and ValidatePayload.
func Validate(hcp *hyperv1.HostedControlPlane, can Capabilities) error {
	for _, s := range hcp.Spec.Services {
		p := s.ServicePublishingStrategy
		if p.Type == hyperv1.Route && !can.Routes && (p.Route == nil || p.Route.Hostname == "") && payload.Public(hcp) {
			return noRouteKind(s.Service)
		}
	}
	if err := validateKonnectivity(StrategyFor(hcp, hyperv1.Konnectivity)); err != nil {
		return err
	}
	api := StrategyFor(hcp, hyperv1.APIServer)
	if api == nil {
		return fmt.Errorf("spec.services does not say how %s is published; use LoadBalancer or NodePort", hyperv1.APIServer)
	}
	switch api.Type {
	case hyperv1.LoadBalancer, hyperv1.None:
		return nil
	case hyperv1.NodePort:
		if api.NodePort == nil || api.NodePort.Address == "" {
			return fmt.Errorf("service %s is published by NodePort without an address; set servicePublishingStrategy.nodePort.address to an address of a node", hyperv1.APIServer)
		}
		return nil
	case hyperv1.Route:
		if payload.Public(hcp) && routeHostname(hcp, hyperv1.APIServer) == "" {
			return fmt.Errorf("service %s is published by Route without a name; set servicePublishingStrategy.route.hostname", hyperv1.APIServer)
		}
		return nil
	}
	return fmt.Errorf("service %s cannot be published by %q; use LoadBalancer or NodePort in spec.services", hyperv1.APIServer, api.Type)
}

func noRouteKind(service hyperv1.ServiceType) error {
	return fmt.Errorf("service %s is published by Route, but the management cluster does not serve route.openshift.io; use LoadBalancer or NodePort in spec.services", service)
}

// ValidateKubernetes is Validate for releases of Kubernetes, which bring no router.
func ValidateKubernetes(hcp *hyperv1.HostedControlPlane, can Capabilities) error {
	for _, s := range hcp.Spec.Services {
		if s.ServicePublishingStrategy.Type == hyperv1.Route && !can.Routes {
			return noRouteKind(s.Service)
		}
	}
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.Konnectivity} {
		if byRoute(hcp, service) {
			return fmt.Errorf("service %s is published by Route, which releases of Kubernetes have no router for; use LoadBalancer or NodePort in spec.services", service)
		}
	}
	if hcp.Spec.Platform.Type == hyperv1.AWSPlatform && payload.Private(hcp) {
		return fmt.Errorf("spec.platform.aws.endpointAccess is %s, and releases of Kubernetes have no router that a private network could lead to; use Public, or a release of OpenShift", hcp.Spec.Platform.AWS.EndpointAccess)
	}
	if privateAPI(hcp) {
		return fmt.Errorf("service %s is published by a load balancer in a private network, which releases of Kubernetes have no way to; give the platform public access", hyperv1.APIServer)
	}
	return nil
}

// Services are the Services that publish the endpoints which exist, whatever the release. The HostedControlPlane must have passed Validate.
func Services(hcp *hyperv1.HostedControlPlane) []*corev1.Service {
	services := []*corev1.Service{apiService(hcp)}
	if hasAPIBalancer(hcp) {
		services = append(services, apiBalancerService(hcp))
	}
	if strategy := konnectivity(hcp); strategy != nil {
		services = append(services, konnectivityService(hcp, strategy))
	}
	return services
}

// KubernetesServices are those that releases of Kubernetes need besides Services. In OpenShift payloads they belong to components.
func KubernetesServices(hcp *hyperv1.HostedControlPlane) []*corev1.Service {
	if konnectivity(hcp) == nil {
		return nil
	}
	return []*corev1.Service{konnectivityLocalService(hcp)}
}

func apiService(hcp *hyperv1.HostedControlPlane) *corev1.Service {
	labels := map[string]string{appLabel: names.KubeAPIServer, hyperv1.ControlPlaneComponentLabel: names.KubeAPIServer}
	port := apiServicePort(ServiceAPIPort(hcp))
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: names.KubeAPIServer, Labels: labels},
		Spec: corev1.ServiceSpec{
			Type:           corev1.ServiceTypeClusterIP,
			IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
			Selector:       apiServerPods(),
		},
	}
	if strategy := StrategyFor(hcp, hyperv1.APIServer); strategy != nil {
		switch strategy.Type {
		case hyperv1.LoadBalancer:
			if privateAPI(hcp) || hasAPIBalancer(hcp) {
				break // another Service is the load balancer
			}
			svc.Spec.Type = corev1.ServiceTypeLoadBalancer
			svc.Spec.LoadBalancerSourceRanges = allowedRanges(hcp)
			svc.Annotations = publicAPILoadBalancer(hcp, strategy)
		case hyperv1.NodePort:
			svc.Spec.Type = corev1.ServiceTypeNodePort
			if strategy.NodePort != nil {
				port.NodePort = strategy.NodePort.Port
			}
		}
	}
	svc.Spec.Ports = []corev1.ServicePort{port}
	return svc
}

// publicAPILoadBalancer are the annotations of the load balancer of the API, nil when there are none.
func publicAPILoadBalancer(hcp *hyperv1.HostedControlPlane, strategy *hyperv1.ServicePublishingStrategy) map[string]string {
	annotations := map[string]string{}
	if hcp.Spec.Platform.Type == hyperv1.AWSPlatform {
		annotations[awsLoadBalancer+"type"] = "nlb"
		if payload.Private(hcp) {
			crossZone(annotations)
		}
	}
	if lb := strategy.LoadBalancer; lb != nil && lb.Hostname != "" {
		annotations[externalDNSAnnotation] = string(lb.Hostname)
	}
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

func apiServerPods() map[string]string {
	return map[string]string{appLabel: names.KubeAPIServer, hyperv1.ControlPlaneComponentLabel: names.KubeAPIServer}
}

// allowedRanges are sorted, so that another order in the spec is no change.
func allowedRanges(hcp *hyperv1.HostedControlPlane) []string {
	if hcp.Spec.Networking.APIServer == nil {
		return nil
	}
	var ranges []string
	for _, block := range hcp.Spec.Networking.APIServer.AllowedCIDRBlocks {
		ranges = append(ranges, string(block))
	}
	slices.Sort(ranges)
	return ranges
}
