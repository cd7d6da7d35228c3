package endpoints

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

const (
	// APIBalancerServiceName is the Service whose load balancer publishes the API on Azure. Service kube-apiserver is then for the control plane alone.
	APIBalancerServiceName = "kube-apiserverlb"

	// ibmAPIPort is that of Service kube-apiserver on IBM Cloud, azureAPIPort that of load balancers of the API on Azure.
	ibmAPIPort   int32 = 2040
	azureAPIPort int32 = 7443
)

// ServiceAPIPort is the port of Service kube-apiserver.
func ServiceAPIPort(hcp *hyperv1.HostedControlPlane) int32 {
	if hcp.Spec.Platform.Type == hyperv1.IBMCloudPlatform {
		return ibmAPIPort
	}
	return InternalAPIPort
}

// BalancedAPIPort is where a load balancer of the API listens.
func BalancedAPIPort(hcp *hyperv1.HostedControlPlane) int32 {
	if hcp.Spec.Platform.Type == hyperv1.AzurePlatform {
		return azureAPIPort
	}
	return ServiceAPIPort(hcp)
}

// hasAPIBalancer says whether a Service of its own is the load balancer of the API.
func hasAPIBalancer(hcp *hyperv1.HostedControlPlane) bool {
	s := StrategyFor(hcp, hyperv1.APIServer)
	return hcp.Spec.Platform.Type == hyperv1.AzurePlatform && s != nil && s.Type == hyperv1.LoadBalancer && !privateAPI(hcp)
}

// apiBalancerService is the load balancer of the API on Azure.
func apiBalancerService(hcp *hyperv1.HostedControlPlane) *corev1.Service {
	svc := apiService(hcp)
	svc.Name, svc.Spec.Type = APIBalancerServiceName, corev1.ServiceTypeLoadBalancer
	svc.Spec.LoadBalancerSourceRanges, svc.Annotations = allowedRanges(hcp), publicAPILoadBalancer(hcp, StrategyFor(hcp, hyperv1.APIServer))
	svc.Spec.Ports = []corev1.ServicePort{apiServicePort(azureAPIPort)}
	return svc
}

func apiServicePort(port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: apiContainerPort, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromString(apiContainerPort)}
}

// apiBalancer is the name of the Service whose load balancer publishes the API.
func apiBalancer(hcp *hyperv1.HostedControlPlane) string {
	switch {
	case privateAPI(hcp):
		return APIPrivateServiceName
	case hasAPIBalancer(hcp):
		return APIBalancerServiceName
	}
	return names.KubeAPIServer
}

// Unwanted are the names of Services that an earlier HostedControlPlane may have had, and that must not exist, whatever the release.
func Unwanted(hcp *hyperv1.HostedControlPlane) []string {
	if hcp.Spec.Platform.Type == hyperv1.AzurePlatform && !hasAPIBalancer(hcp) {
		return []string{APIBalancerServiceName}
	}
	return nil
}
