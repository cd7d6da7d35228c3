package clusternetworkoperator

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/release"
)

func contextOf(mutate func(*hyperv1.HostedControlPlane)) component.WorkloadContext {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Name = "demo"
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api.example.com", Port: 443}
	mutate(hcp)
	r := &release.Release{Version: "4.22.0", Placeholders: true}
	return component.WorkloadContext{HCP: hcp, Release: r, UserRelease: r}
}

func TestOverride(t *testing.T) {
	aws := func(access hyperv1.AWSEndpointAccessType, strategy hyperv1.PublishingStrategyType) func(*hyperv1.HostedControlPlane) {
		return func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{EndpointAccess: access}}
			hcp.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.APIServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: strategy}}}
		}
	}
	for name, tc := range map[string]struct {
		mutate func(*hyperv1.HostedControlPlane)
		host   string
		port   int32
	}{
		"When the API is public it should be where users reach it":             {aws(hyperv1.Public, hyperv1.LoadBalancer), "api.example.com", 443},
		"When it is private by load balancer it should be in the private zone": {aws(hyperv1.Private, hyperv1.LoadBalancer), "api.demo.hypershift.local", 6443},
		"When it is private by Route it should be at the router":               {aws(hyperv1.PublicAndPrivate, hyperv1.Route), "api.demo.hypershift.local", 443},
		"When it is on IBM Cloud it should be the advertised address": {func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Platform.Type = hyperv1.IBMCloudPlatform
			hcp.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("172.20.0.1"), Port: ptr.To[int32](2040)}
		}, "172.20.0.1", 2040},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			host, port := override(contextOf(tc.mutate))
			g.Expect(host).To(Equal(tc.host))
			g.Expect(port).To(Equal(tc.port))
		})
	}
}

func TestAdaptDeployment(t *testing.T) {
	t.Run("When the hosted cluster has release 4.12 it should remove the webhook that nobody answers any more", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(func(*hyperv1.HostedControlPlane) {})
		ctx.UserRelease = &release.Release{Version: "4.12.9", Placeholders: true}
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init-client-token-minter"}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: Name}, {Name: "client-token-minter"}}
		g.Expect(adaptDeployment(ctx, d)).To(Succeed())
		g.Expect(d.Spec.Template.Spec.InitContainers).To(HaveLen(2))
		ctx.UserRelease = ctx.Release
		d.Spec.Template.Spec.InitContainers = d.Spec.Template.Spec.InitContainers[:1]
		g.Expect(adaptDeployment(ctx, d)).To(Succeed())
		g.Expect(d.Spec.Template.Spec.InitContainers).To(HaveLen(1))
	})
}
