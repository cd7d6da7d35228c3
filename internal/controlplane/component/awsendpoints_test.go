package component

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestAWSEndpoints(t *testing.T) {
	context := func(endpoint string, list ...hyperv1.AWSServiceEndpoint) WorkloadContext {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{ServiceEndpoints: list}}
		return WorkloadContext{HCP: hcp, Environment: Environment{AWSEndpoint: endpoint}}
	}
	t.Run("When a cluster names endpoints they should be told by the SDK's names, in order", func(t *testing.T) {
		NewWithT(t).Expect(AWSEndpoints(context("https://all.example.com", hyperv1.AWSServiceEndpoint{Name: "route53", URL: "https://r.example.com"},
			hyperv1.AWSServiceEndpoint{Name: "elasticloadbalancing", URL: "https://l.example.com"}, hyperv1.AWSServiceEndpoint{Name: "ec2", URL: "https://e.example.com"},
			hyperv1.AWSServiceEndpoint{Name: "ec2", URL: "https://again.example.com"}, hyperv1.AWSServiceEndpoint{Name: "a=b", URL: "https://x.example.com"}))).To(Equal([]corev1.EnvVar{
			{Name: "AWS_ENDPOINT_URL", Value: "https://all.example.com"}, {Name: "AWS_ENDPOINT_URL_EC2", Value: "https://e.example.com"},
			{Name: "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING", Value: "https://l.example.com"}, {Name: "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2", Value: "https://l.example.com"},
			{Name: "AWS_ENDPOINT_URL_ROUTE_53", Value: "https://r.example.com"},
		}))
	})
	t.Run("When nobody names one there should be none", func(t *testing.T) { NewWithT(t).Expect(AWSEndpoints(context(""))).To(BeEmpty()) })
	t.Run("When the platform is another there should be none", func(t *testing.T) {
		c := context("https://all.example.com")
		c.HCP.Spec.Platform.Type = hyperv1.NonePlatform
		NewWithT(t).Expect(AWSEndpoints(c)).To(BeEmpty())
	})
}
