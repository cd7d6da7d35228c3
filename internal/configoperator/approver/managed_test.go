package approver

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestManaged(t *testing.T) {
	for name, tc := range map[string]struct {
		platform    hyperv1.PlatformSpec
		annotations map[string]string
		want        bool
	}{
		"When people make machines it should leave requests to them": {platform: hyperv1.PlatformSpec{Type: hyperv1.NonePlatform}},
		"When machines are pods it should decide":                    {platform: hyperv1.PlatformSpec{Type: hyperv1.LocalPlatform}, want: true},
		// That is what the hypershift-operator makes of platform Agent.
		"When machines are hosts of the assisted installer it should decide": {
			platform: hyperv1.PlatformSpec{Type: hyperv1.NonePlatform, Agent: &hyperv1.AgentPlatformSpec{AgentNamespace: "hosts"}}, want: true},
		"When nobody manages machines it should leave requests to people": {
			platform: hyperv1.PlatformSpec{Type: hyperv1.LocalPlatform}, annotations: map[string]string{hyperv1.DisableMachineManagement: "true"}},
		"When the platform is unknown it should leave requests alone": {platform: hyperv1.PlatformSpec{Type: "Nowhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			hcp.Spec.Platform = tc.platform
			NewWithT(t).Expect(Managed(hcp)).To(Equal(tc.want))
		})
	}
}
