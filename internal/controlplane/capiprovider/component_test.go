package capiprovider

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/testenv/bare"
)

func TestEndpoint(t *testing.T) {
	for name, tc := range map[string]struct {
		platform hyperv1.PlatformType
		want     bool
	}{
		"When the operator calls another endpoint of AWS the provider of AWS should, too": {platform: hyperv1.AWSPlatform, want: true},
		"When the platform is another's it should not be told":                            {platform: hyperv1.GCPPlatform},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx := bare.Context(t, bare.HostedControlPlane(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Platform = hyperv1.PlatformSpec{Type: tc.platform} }))
			ctx.Environment = component.EnvironmentFrom(func(key string) string { return map[string]string{"AWS_ENDPOINT_URL": "https://aws.example.com"}[key] })
			spec := &appsv1.DeploymentSpec{}
			spec.Template.Spec.Containers = []corev1.Container{{Name: managerContainer, Image: "registry.example.com/provider:1"}}
			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: managerContainer}}
			g.Expect(Options{Spec: spec}.adaptDeployment(ctx, d)).To(Succeed())
			endpoint := ContainElement(corev1.EnvVar{Name: "AWS_ENDPOINT_URL", Value: "https://aws.example.com"})
			if !tc.want {
				endpoint = Not(endpoint)
			}
			g.Expect(d.Spec.Template.Spec.Containers[0].Env).To(endpoint)
		})
	}
}
