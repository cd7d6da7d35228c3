package kubescheduler

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

func TestProfile(t *testing.T) {
	for profile, want := range map[configv1.SchedulerProfile]string{
		configv1.LowNodeUtilization:  "{}",
		configv1.HighNodeUtilization: `"MostAllocated"`,
		configv1.NoScoring:           `"preScore":{"disabled":[{"name":"*"}]}`,
	} {
		t.Run("When the profile is "+string(profile)+" the configuration should say so", func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Scheduler: &configv1.SchedulerSpec{Profile: profile}}
			cm := &corev1.ConfigMap{Data: map[string]string{"config.json": "{}"}}
			g.Expect(adaptConfig(component.WorkloadContext{HCP: hcp}, cm)).To(Succeed())
			g.Expect(cm.Data["config.json"]).To(ContainSubstring(want))
		})
	}
}
