package ignitionserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Publish has a Service, which is of type ClusterIP, be reached as the user wants.
func Publish(s *hyperv1.ServicePublishingStrategy, svc *corev1.Service) error {
	switch s.Type {
	case hyperv1.Route:
	case hyperv1.NodePort:
		svc.Spec.Type = corev1.ServiceTypeNodePort
		if s.NodePort != nil {
			svc.Spec.Ports[0].NodePort = s.NodePort.Port
		}
	default:
		return fmt.Errorf("spec.services: Ignition cannot be published by %s, only by Route or NodePort", s.Type)
	}
	return nil
}
