package capiprovider

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/release"
)

func contextOf(platform hyperv1.PlatformSpec) component.WorkloadContext {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Spec.Platform = platform
	return component.WorkloadContext{HCP: hcp, Release: &release.Release{Version: "4.22.0"}}
}

func TestProviders(t *testing.T) {
	azure := &hyperv1.AzurePlatformSpec{TenantID: "tenant"}
	azure.AzureAuthenticationConfig.WorkloadIdentities = &hyperv1.AzureWorkloadIdentities{NodePoolManagement: hyperv1.WorkloadIdentity{ClientID: "client"}}
	aro := &hyperv1.AzurePlatformSpec{}
	aro.AzureAuthenticationConfig.AzureAuthenticationConfigType = hyperv1.AzureAuthenticationTypeManagedIdentities
	for name, tc := range map[string]struct {
		platform          hyperv1.PlatformSpec
		image             string
		containers, rules int
	}{
		"AWS":                {hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{}}, "aws-cluster-api-controllers", 2, 0},
		"self-managed Azure": {hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: azure}, "azure-cluster-api-controllers", 2, 0},
		"Azure Red Hat":      {hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: aro}, "azure-cluster-api-controllers", 1, 0},
		"Google Cloud":       {hyperv1.PlatformSpec{Type: hyperv1.GCPPlatform, GCP: &hyperv1.GCPPlatformSpec{}}, "gcp-cluster-api-controllers", 1, 0},
		"OpenStack":          {hyperv1.PlatformSpec{Type: hyperv1.OpenStackPlatform, OpenStack: &hyperv1.OpenStackPlatformSpec{}}, "openstack-cluster-api-controllers", 2, 2},
	} {
		t.Run("When the platform is "+name+" its provider should run as it wants", func(t *testing.T) {
			g := NewWithT(t)
			ctx, d, role := contextOf(tc.platform), &appsv1.Deployment{}, &rbacv1.Role{}
			g.Expect(adaptDeployment(ctx, d)).To(Succeed())
			g.Expect(d.Spec.Template.Spec.Containers).To(HaveLen(tc.containers))
			g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(tc.image))
			g.Expect(d.Spec.Template.Labels).To(Equal(d.Spec.Selector.MatchLabels))
			g.Expect(adaptRole(ctx, role)).To(Succeed())
			g.Expect(role.Rules).To(HaveLen(tc.rules))
		})
	}
	t.Run("When a payload brings the manager of OpenStack's images it should run beside the provider, and not before 4.19", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(hyperv1.PlatformSpec{Type: hyperv1.OpenStackPlatform, OpenStack: &hyperv1.OpenStackPlatformSpec{}})
		d := &appsv1.Deployment{}
		g.Expect(adaptDeployment(ctx, d)).To(Succeed())
		orc := component.Container(&d.Spec.Template.Spec, "orc-manager")
		g.Expect(orc.Image).To(Equal("openstack-resource-controller"))
		g.Expect(orc.ReadinessProbe.HTTPGet.Port.String()).To(Equal(orc.Ports[0].Name))
		ctx.Release.Version = "4.18.9"
		g.Expect(adaptDeployment(ctx, d)).To(Succeed())
		g.Expect(d.Spec.Template.Spec.Containers).To(HaveLen(1))
	})
	t.Run("When nobody names the image of a provider that payloads lack it should be said", func(t *testing.T) {
		err := adaptDeployment(contextOf(hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform}), &appsv1.Deployment{})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(hyperv1.ClusterAPIKubeVirtProviderImage)))
	})
	t.Run("When there are no machines there should be no provider", func(t *testing.T) {
		NewWithT(t).Expect(Offered(contextOf(hyperv1.PlatformSpec{Type: hyperv1.NonePlatform}).HCP)).To(BeFalse())
	})
}
