package cloudcontrollermanager

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

func TestAWSConfig(t *testing.T) {
	config := func(g Gomega, change func(*hyperv1.AWSPlatformSpec)) string {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.InfraID = "demo-abcde"
		hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{Region: "eu-west-1", CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{VPC: "vpc-1"}}}
		change(hcp.Spec.Platform.AWS)
		cm := &corev1.ConfigMap{}
		g.Expect(awsConfig(component.WorkloadContext{HCP: hcp}, cm)).To(Succeed())
		return cm.Data["aws.conf"]
	}
	for name, tc := range map[string]struct {
		change func(*hyperv1.AWSPlatformSpec)
		want   string
	}{
		"a zone": {func(a *hyperv1.AWSPlatformSpec) { a.CloudProviderConfig.Zone = "eu-west-1b" }, "eu-west-1b"},
		"a VPC":  {func(a *hyperv1.AWSPlatformSpec) { a.CloudProviderConfig.VPC = "vpc-2" }, "vpc-2"},
		"a subnet": {func(a *hyperv1.AWSPlatformSpec) {
			a.CloudProviderConfig.Subnet = &hyperv1.AWSResourceReference{ID: ptr.To("subnet-2")}
		}, "subnet-2"},
		"an endpoint": {func(a *hyperv1.AWSPlatformSpec) {
			a.ServiceEndpoints = []hyperv1.AWSServiceEndpoint{{Name: "ec2", URL: "https://ec2.example.com"}}
		}, "https://ec2.example.com"},
	} {
		t.Run("When the cluster names "+name+" the cloud controller should be told", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(config(g, func(*hyperv1.AWSPlatformSpec) {})).NotTo(ContainSubstring(tc.want))
			g.Expect(config(g, tc.change)).To(ContainSubstring(tc.want))
		})
	}
}
