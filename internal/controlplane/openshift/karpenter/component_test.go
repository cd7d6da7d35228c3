package karpenter

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

func TestWanted(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-abcde-kubeconfig"}}
	for name, tc := range map[string]struct {
		change func(*hyperv1.HostedControlPlane)
		there  bool
		want   bool
		says   string
	}{
		"When Karpenter is asked for and can reach the cluster it should be wanted": {there: true, want: true},
		"When there is no kubeconfig it should wait for it":                         {says: "waiting for Secret ns/demo-abcde-kubeconfig"},
		"When nobody asks for it it should not be wanted":                           {there: true, change: func(h *hyperv1.HostedControlPlane) { h.Spec.AutoNode = nil }},
		"When the cluster has not come up it should not be wanted":                  {there: true, change: func(h *hyperv1.HostedControlPlane) { h.Status.KubeConfig = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
			hcp.Spec.InfraID = "demo-abcde"
			hcp.Spec.AutoNode = &hyperv1.AutoNode{}
			hcp.Spec.AutoNode.Provisioner.Name = hyperv1.ProvisionerKarpenter
			hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig"}
			if tc.change != nil {
				tc.change(hcp)
			}
			builder := fake.NewClientBuilder()
			if tc.there {
				builder = builder.WithObjects(secret)
			}
			got, err := wanted(component.WorkloadContext{Context: t.Context(), Reader: builder.Build(), HCP: hcp})
			if tc.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestAdaptDeployment(t *testing.T) {
	t.Run("When the user names an image it should be that, for the cluster of the infrastructure", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.KarpenterProviderAWSImage: "example.com/karpenter:1"}}}
		hcp.Spec.InfraID = "demo-abcde"
		hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{Region: "eu-west-1"}}
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: Name, Image: "aws-karpenter-provider-aws"}}
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "target-kubeconfig", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}}}
		g.Expect(adaptDeployment(component.WorkloadContext{HCP: hcp}, d)).To(Succeed())
		g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("example.com/karpenter:1"))
		g.Expect(d.Spec.Template.Spec.Containers[0].Env).To(ContainElements(corev1.EnvVar{Name: "AWS_REGION", Value: "eu-west-1"}, corev1.EnvVar{Name: "CLUSTER_NAME", Value: "demo-abcde"}))
		g.Expect(d.Spec.Template.Spec.Volumes[0].Secret.SecretName).To(Equal("demo-abcde-kubeconfig"))
	})
}
