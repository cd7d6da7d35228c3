package endpoints

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// described are Services by name, as "type port".
func described(services []*corev1.Service) map[string]string {
	out := map[string]string{}
	for _, s := range services {
		out[s.Name] = string(s.Spec.Type) + " " + s.Spec.Ports[0].TargetPort.String() + " " + string('0'+s.Spec.Ports[0].Port/1000) // thousands tell them apart
	}
	return out
}

func TestPortsOfPlatforms(t *testing.T) {
	on := func(platform hyperv1.PlatformSpec, strategy hyperv1.ServicePublishingStrategy) *hyperv1.HostedControlPlane {
		return hcp(strategy, func(h *hyperv1.HostedControlPlane) {
			h.Spec.Platform = platform
			h.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AllowedCIDRBlocks: []hyperv1.CIDRBlock{"192.0.2.0/24"}}
		})
	}
	azure := func(topology hyperv1.AzureTopologyType) hyperv1.PlatformSpec {
		return hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{Topology: topology, Private: &hyperv1.AzurePrivateSpec{Type: hyperv1.AzurePrivateTypePrivateLink}}}
	}
	ibm := hyperv1.PlatformSpec{Type: hyperv1.IBMCloudPlatform}

	t.Run("When a public API is published by a load balancer of Azure a Service of its own should be that, on port 7443", func(t *testing.T) {
		g := NewWithT(t)
		h := on(azure(hyperv1.AzureTopologyPublic), named)
		services := Services(h)
		g.Expect(described(services)).To(Equal(map[string]string{"kube-apiserver": "ClusterIP client 6", "kube-apiserverlb": "LoadBalancer client 7"}))
		g.Expect(services[0].Spec.LoadBalancerSourceRanges).To(BeNil())
		g.Expect(services[0].Annotations).To(BeNil())
		g.Expect(services[1].Spec.Ports[0].Port).To(Equal(int32(7443)))
		g.Expect(services[1].Spec.LoadBalancerSourceRanges).To(Equal([]string{"192.0.2.0/24"}))
		g.Expect(services[1].Annotations).To(HaveKeyWithValue(externalDNSAnnotation, "api.example.com"))
		g.Expect(services[1].Spec.Selector).To(Equal(services[0].Spec.Selector))
		g.Expect(Unwanted(h)).To(BeEmpty())
	})
	t.Run("When that load balancer has an address the API should be reached there, on its port", func(t *testing.T) {
		g := NewWithT(t)
		h := on(azure(hyperv1.AzureTopologyPublic), loadBalancer)
		g.Expect(StatusOf(h, Live{API: service(ingress(corev1.LoadBalancerIngress{IP: "192.0.2.1"}))}).Missing).To(Equal([]string{"service clusters-demo/kube-apiserverlb does not exist yet"}))
		s := StatusOf(h, Live{API: service(), APIBalancer: service(ingress(corev1.LoadBalancerIngress{IP: "192.0.2.9"}))})
		g.Expect([]any{s.APIHost, s.APIPort, s.AdvertisePort, s.APIServiceIP}).To(Equal([]any{"192.0.2.9", int32(7443), int32(7443), "10.96.7.7"}))
	})
	t.Run("When the API is private on Azure its internal load balancer should have that port, and there should be no public one", func(t *testing.T) {
		g := NewWithT(t)
		h := on(azure(hyperv1.AzureTopologyPrivate), loadBalancer)
		g.Expect(described(Services(h))).To(Equal(map[string]string{"kube-apiserver": "ClusterIP client 6"}))
		private := routerServices(h, Routing{OwnRouter: true, Private: true}, false)[APIPrivateServiceName]
		g.Expect(private.Spec.Ports[0].Port).To(Equal(int32(7443)))
		g.Expect(Unwanted(h)).To(Equal([]string{"kube-apiserverlb"}))
	})
	t.Run("When the API is published otherwise on Azure it should have one Service", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(described(Services(on(azure(hyperv1.AzureTopologyPublic), nodePort)))).To(Equal(map[string]string{"kube-apiserver": "NodePort client 6"}))
	})
	t.Run("When the platform is IBM Cloud the Service and its load balancer should have port 2040, as those expect who call it", func(t *testing.T) {
		g := NewWithT(t)
		h := on(ibm, loadBalancer)
		g.Expect(described(Services(h))).To(Equal(map[string]string{"kube-apiserver": "LoadBalancer client 2"}))
		g.Expect(StatusOf(h, Live{API: service(ingress(corev1.LoadBalancerIngress{IP: "192.0.2.1"}))}).APIPort).To(Equal(int32(2040)))
		g.Expect(StatusOf(on(ibm, none), Live{API: service()}).APIPort).To(Equal(int32(2040)))
	})
	t.Run("When the platform is another the Service should have port 6443", func(t *testing.T) {
		g := NewWithT(t)
		h := on(hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform}, loadBalancer)
		g.Expect(described(Services(h))).To(Equal(map[string]string{"kube-apiserver": "LoadBalancer client 6"}))
		g.Expect([]int32{ServiceAPIPort(h), BalancedAPIPort(h)}).To(Equal([]int32{6443, 6443}))
		g.Expect(Unwanted(h)).To(BeEmpty())
	})
}
