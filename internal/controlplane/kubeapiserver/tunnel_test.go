package kubeapiserver

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestTunnelServerEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		policy      hyperv1.AvailabilityPolicy
		annotations map[string]string
		ours        bool
		sleep       int64
	}{
		"When it is alone it should serve until nobody is sent to it": {policy: hyperv1.SingleReplica, sleep: 5},
		"When there are several it should tell agents at once":        {policy: hyperv1.HighlyAvailable, ours: true},
		"When there are several stock ones they should be told to end when kube-apiserver has": {policy: hyperv1.HighlyAvailable, sleep: 70,
			annotations: map[string]string{hyperv1.KonnectivityServerImageAnnotation: "registry.example.com/proxy-server:v1"}},
		"When there are several stock ones by overrides they should, too": {policy: hyperv1.HighlyAvailable, sleep: 70,
			annotations: map[string]string{hyperv1.ImageOverridesAnnotation: "etcd=e, apiserver-network-proxy=registry.example.com/proxy-server:v1"}},
		"When other images are overridden it should make no difference": {policy: hyperv1.HighlyAvailable, ours: true,
			annotations: map[string]string{hyperv1.ImageOverridesAnnotation: "apiserver-network-proxy-agent=a"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Annotations = tc.annotations
			hcp.Spec.ControllerAvailabilityPolicy = tc.policy
			got := tunnelServer(contextOf(t, hcp))
			if tc.sleep == 0 {
				g.Expect(got.Lifecycle).To(BeNil())
			} else {
				g.Expect(got.Lifecycle).To(Equal(&corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: tc.sleep}}}))
			}
			flag := ContainElement("--shutdown-delay=65s")
			if tc.ours {
				g.Expect(got.Args).To(flag)
			} else {
				g.Expect(got.Args).NotTo(flag, "the stock server doesn't know it")
			}
		})
	}
}
