package testenv

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// HostedCluster is one that the API server takes, on platform None. Its release and pull secret don't exist.
func HostedCluster(namespace, name string) *hyperv1.HostedCluster {
	var services []hyperv1.ServicePublishingStrategyMapping
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		services = append(services, hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
			Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "10.0.0.1"},
		}})
	}
	return &hyperv1.HostedCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: hyperv1.HostedClusterSpec{
			Release: hyperv1.Release{Image: "registry.example/release:1"}, PullSecret: corev1.LocalObjectReference{Name: "pull"},
			Platform: hyperv1.PlatformSpec{Type: hyperv1.NonePlatform},
			Networking: hyperv1.ClusterNetworking{
				ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}},
				ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}},
			},
			Services: services,
		},
	}
}
