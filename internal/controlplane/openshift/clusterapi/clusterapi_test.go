package clusterapi

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/release"
)

func TestVersions(t *testing.T) {
	for version, flags := range map[string]int{"4.18.9": 0, "4.19.0": 1, "4.22.0": 3, "4.23.0-rc.1": 5, "5.0.0": 5, "not a version": 0} {
		t.Run("When the release is "+version+" the manager should get the flags that it knows", func(t *testing.T) {
			g := NewWithT(t)
			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager"}}
			g.Expect(adaptDeployment(component.WorkloadContext{HCP: &hyperv1.HostedControlPlane{}, Release: &release.Release{Version: version}}, d)).To(Succeed())
			g.Expect(d.Spec.Template.Spec.Containers[0].Args).To(HaveLen(flags))
		})
	}
}
