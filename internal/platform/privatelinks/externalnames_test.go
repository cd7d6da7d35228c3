package privatelinks

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestExternalNames(t *testing.T) {
	published := func(mutate func(*hyperv1.HostedControlPlane)) map[string]string {
		route := func(host hyperv1.PublishedHostname) hyperv1.ServicePublishingStrategy {
			return hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: host}}
		}
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{EndpointAccess: hyperv1.Private}}
		hcp.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{
			{Service: hyperv1.APIServer, ServicePublishingStrategy: route("api.example.com")},
			{Service: hyperv1.OAuthServer, ServicePublishingStrategy: route("oauth.example.com")},
		}
		mutate(hcp)
		return externalNames(hcp)
	}
	t.Run("When a cluster is private its Routes' names should be told to external-dns", func(t *testing.T) {
		NewWithT(t).Expect(published(func(*hyperv1.HostedControlPlane) {})).To(Equal(map[string]string{
			"kube-apiserver-private-external": "api.example.com", "oauth-private-external": "oauth.example.com"}))
	})
	t.Run("When it is public, too, they should not", func(t *testing.T) {
		NewWithT(t).Expect(published(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Platform.AWS.EndpointAccess = hyperv1.PublicAndPrivate })).To(BeEmpty())
	})
	t.Run("When the API has a load balancer of its own its name should not", func(t *testing.T) {
		NewWithT(t).Expect(published(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
		})).To(Equal(map[string]string{"oauth-private-external": "oauth.example.com"}))
	})
}
