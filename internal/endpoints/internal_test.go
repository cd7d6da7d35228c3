package endpoints

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestInternalLoadBalancer(t *testing.T) {
	of := func(topology hyperv1.AzureTopologyType, by hyperv1.AzurePrivateType) *hyperv1.HostedControlPlane {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{Topology: topology, Private: &hyperv1.AzurePrivateSpec{Type: by}}}
		hcp.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.OAuthServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
			Type: hyperv1.LoadBalancer, LoadBalancer: &hyperv1.LoadBalancerPublishingStrategy{Hostname: "oauth.example.com"}}}}
		return hcp
	}
	for name, c := range map[string]struct {
		hcp  *hyperv1.HostedControlPlane
		want bool
	}{
		"is private by a Private Link service":            {of(hyperv1.AzureTopologyPrivate, hyperv1.AzurePrivateTypePrivateLink), true},
		"is public, too":                                  {of(hyperv1.AzureTopologyPublicAndPrivate, hyperv1.AzurePrivateTypePrivateLink), false},
		"has pods with interfaces in the virtual network": {of(hyperv1.AzureTopologyPrivate, hyperv1.AzurePrivateTypeSwift), false},
	} {
		t.Run("When a control plane "+name+" the load balancer of its OAuth server should be reached accordingly, by its name", func(t *testing.T) {
			g := NewWithT(t)
			svc := oauthService(c.hcp)
			g.Expect(InternalLoadBalancer(svc)).To(Equal(c.want))
			g.Expect(svc.Annotations).To(HaveKeyWithValue(externalDNSAnnotation, "oauth.example.com"))
		})
	}
	t.Run("When a load balancer has no name it should have no annotations", func(t *testing.T) {
		hcp := of(hyperv1.AzureTopologyPublic, "")
		hcp.Spec.Services[0].ServicePublishingStrategy.LoadBalancer = nil
		NewWithT(t).Expect(oauthService(hcp).Annotations).To(BeNil())
	})
	t.Run("When a router is private Azure and Google should be asked for an internal load balancer", func(t *testing.T) {
		g := NewWithT(t)
		r := Routing{OwnRouter: true, Private: true}
		google := &hyperv1.HostedControlPlane{}
		google.Spec.Platform.Type = hyperv1.GCPPlatform
		for _, hcp := range []*hyperv1.HostedControlPlane{of(hyperv1.AzureTopologyPrivate, hyperv1.AzurePrivateTypePrivateLink), google} {
			g.Expect(InternalLoadBalancer(routerServices(hcp, r, false)[PrivateRouterServiceName])).To(BeTrue())
		}
	})
}

func TestKonnectivityLocalService(t *testing.T) {
	for name, tc := range map[string]struct {
		policy hyperv1.AvailabilityPolicy
		want   bool
	}{
		"When there is one server it should be found before it is ready, and while it ends": {hyperv1.SingleReplica, true},
		"When there are several the ones that end should not be found":                      {hyperv1.HighlyAvailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.ControllerAvailabilityPolicy = tc.policy
			NewWithT(t).Expect(konnectivityLocalService(hcp).Spec.PublishNotReadyAddresses).To(Equal(tc.want))
		})
	}
}
