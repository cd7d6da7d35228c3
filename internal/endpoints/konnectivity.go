package endpoints

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// konnectivity is how the tunnel server is published; nil when it is not: a hosted cluster without workers needs none.
func konnectivity(hcp *hyperv1.HostedControlPlane) *hyperv1.ServicePublishingStrategy {
	strategy := StrategyFor(hcp, hyperv1.Konnectivity)
	if strategy == nil {
		return nil
	}
	switch strategy.Type {
	case hyperv1.LoadBalancer, hyperv1.NodePort, hyperv1.Route:
		return strategy
	}
	return nil
}

func validateKonnectivity(strategy *hyperv1.ServicePublishingStrategy) error {
	if strategy != nil && strategy.Type == hyperv1.NodePort && (strategy.NodePort == nil || strategy.NodePort.Address == "") {
		return fmt.Errorf("service %s is published by NodePort without an address; set servicePublishingStrategy.nodePort.address to an address of a node", hyperv1.Konnectivity)
	}
	return nil
}

func konnectivityService(hcp *hyperv1.HostedControlPlane, strategy *hyperv1.ServicePublishingStrategy) *corev1.Service {
	svc := tunnelService(hcp, KonnectivityServiceName, KonnectivityPort)
	switch strategy.Type {
	case hyperv1.LoadBalancer:
		svc.Spec.Type = corev1.ServiceTypeLoadBalancer
		if lb := strategy.LoadBalancer; lb != nil && lb.Hostname != "" {
			svc.Annotations = map[string]string{externalDNSAnnotation: string(lb.Hostname)}
		}
	case hyperv1.NodePort:
		svc.Spec.Type = corev1.ServiceTypeNodePort
		if strategy.NodePort != nil {
			svc.Spec.Ports[0].NodePort = strategy.NodePort.Port
		}
	}
	return svc
}

// konnectivityLocalService has the server of a pod that isn't ready, too, where it is the only one: kube-apiserver uses the tunnel before it is ready itself and
// while it shuts down. Of several, one that ends would be there until its pod is gone, and so longer than it listens; the others are enough.
func konnectivityLocalService(hcp *hyperv1.HostedControlPlane) *corev1.Service {
	svc := tunnelService(hcp, KonnectivityLocalServiceName, KonnectivityLocalPort)
	svc.Spec.PublishNotReadyAddresses = hcp.Spec.ControllerAvailabilityPolicy != hyperv1.HighlyAvailable
	return svc
}

func tunnelService(hcp *hyperv1.HostedControlPlane, name string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: name, Labels: map[string]string{appLabel: name}},
		Spec: corev1.ServiceSpec{
			Type:           corev1.ServiceTypeClusterIP,
			IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
			Selector:       apiServerPods(),
			Ports:          []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port)}},
		},
	}
}

// fillKonnectivity is about the tunnel server, if there is one.
func (s *Status) fillKonnectivity(hcp *hyperv1.HostedControlPlane, live Live) error {
	strategy := konnectivity(hcp)
	if strategy == nil {
		return nil
	}
	svc := live.Konnectivity
	if svc == nil {
		return fmt.Errorf("service %s/%s does not exist yet", hcp.Namespace, KonnectivityServiceName)
	}
	switch strategy.Type {
	case hyperv1.Route:
		host, err := routeHost(hcp, live.Payload, KonnectivityRouteName)
		if err != nil {
			return err
		}
		s.KonnectivityHost, s.KonnectivityPort = host, RoutePort
		return nil
	case hyperv1.NodePort:
		if strategy.NodePort == nil {
			return fmt.Errorf("spec.services gives no address for %s", hyperv1.Konnectivity)
		}
		if len(svc.Spec.Ports) == 0 || svc.Spec.Ports[0].NodePort == 0 {
			return fmt.Errorf("service %s/%s has no node port yet%s", svc.Namespace, svc.Name, because(live.KonnectivityWarnings))
		}
		s.KonnectivityHost, s.KonnectivityPort = strategy.NodePort.Address, svc.Spec.Ports[0].NodePort
		return nil
	}
	if host := loadBalancerHost(strategy, svc); host != "" {
		s.KonnectivityHost, s.KonnectivityPort = host, KonnectivityPort
		return nil
	}
	return fmt.Errorf("load balancer of service %s/%s has no address yet%s", svc.Namespace, svc.Name, because(live.KonnectivityWarnings))
}
